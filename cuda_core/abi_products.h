/* The C ABI of products; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_PRODUCTS_H_
#define LLTM_ABI_PRODUCTS_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

/* Those of the cell with its weights, for few rows: up to 16 or so on a CPU. I = input_features.
 * gate_products: gates = [old_h, input] weights^T.
 * gradient_products: d_old_h and d_input are the column blocks of d_gates weights, d_weights =
 * d_gates^T [old_h, input], d_bias the sum of d_gates over the batch. What is null is not computed.
 * On a GPU it is one launch, for small sizes; gate_products has no CUDA twin, for
 * cell_fused_forward does more.
 * Here an empty sum is zero: with B == 0 or H == 0 inputs may be null, outputs are zeros. */
#define LLTM_DECLARE_GATE_PRODUCTS(name, type)                                     \
  int32_t lltm_gate_products_cpu_##name(                                           \
      int64_t batch_size,     /* B >= 0 */                                         \
      int64_t state_size,     /* H >= 0 */                                         \
      int64_t input_features, /* I >= 0 */                                         \
      const type* input,      /* in  [B, I] */                                     \
      const type* weights,    /* in  [3H, H + I] columns: those of old_h, input */ \
      const type* old_h,      /* in  [B, H] */                                     \
      type* gates             /* out [B, 3H] without bias */                       \
      ) LLTM_NOEXCEPT;
#define LLTM_DECLARE_GRADIENT_PRODUCTS(device, name, type)                            \
  int32_t lltm_gradient_products_##device##_##name(                                   \
      int64_t batch_size,     /* B >= 0 */                                            \
      int64_t state_size,     /* H >= 0 */                                            \
      int64_t input_features, /* I >= 0 */                                            \
      const type* d_gates,    /* in  [B, 3H] */                                       \
      const type* input,      /* in  [B, I], or null without d_weights */             \
      const type* weights,    /* in  [3H, H + I], or null without d_input, d_old_h */ \
      const type* old_h,      /* in  [B, H], or null without d_weights */             \
      type* d_input,          /* out [B, I], or null */                               \
      type* d_weights,        /* out [3H, H + I], or null */                          \
      type* d_bias,           /* out [3H], or null */                                 \
      type* d_old_h,          /* out [B, H], or null */                               \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_GATE_PRODUCTS(float, float)
LLTM_DECLARE_GATE_PRODUCTS(double, double)
LLTM_DECLARE_GRADIENT_PRODUCTS(cpu, float, float)
LLTM_DECLARE_GRADIENT_PRODUCTS(cpu, double, double)
LLTM_DECLARE_GRADIENT_PRODUCTS(cuda, float, float)
LLTM_DECLARE_GRADIENT_PRODUCTS(cuda, double, double)
LLTM_DECLARE_GRADIENT_PRODUCTS(cuda, half, lltm_half)
LLTM_DECLARE_GRADIENT_PRODUCTS(cuda, bfloat16, lltm_bfloat16)

#undef LLTM_DECLARE_GATE_PRODUCTS
#undef LLTM_DECLARE_GRADIENT_PRODUCTS

/* sequence_product: c = a weights^T if `transposed` is not 0, else a weights, of all N rows of a
 * sequence: the gates of its inputs, or the gradients of the inputs. For sizes so small that a
 * library takes longer on the host than on the GPU; no CPU twin. An empty sum is zero. */
#define LLTM_DECLARE_SEQUENCE_PRODUCT(name, type)                                              \
  int32_t lltm_sequence_product_cuda_##name(                                                   \
      int64_t rows,                     /* N >= 0 */                                           \
      int64_t inner,                    /* K >= 0, the terms of a sum */                       \
      int64_t columns,                  /* M >= 0 */                                           \
      const type* a,                    /* in  [N, K] */                                       \
      const type* weights,              /* in  [M, K] if transposed, else [K, M] */            \
      int64_t weights_stride,           /* from one row of them to the next, at least a row */ \
      int32_t transposed, int32_t tf32, /* of float: not 0 allows the accuracy of TF32 */      \
      type* c,                          /* out [N, M] */                                       \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_SEQUENCE_PRODUCT(float, float)
LLTM_DECLARE_SEQUENCE_PRODUCT(double, double)
LLTM_DECLARE_SEQUENCE_PRODUCT(half, lltm_half)
LLTM_DECLARE_SEQUENCE_PRODUCT(bfloat16, lltm_bfloat16)

#undef LLTM_DECLARE_SEQUENCE_PRODUCT

/* Those of matrices of any size, on a CPU: c = a b, or c += a b, where a is [M, K], b is [K, N] and
 * c is [M, N]. A step is how many elements the next row, or column, is away. multiply reads b as it
 * is. For a b of many products pack_matrix puts it, once, into the order in which multiply_packed
 * reads it: panels of panel_columns columns one after another, each [K, panel_columns] dense, the
 * last filled up with zeros. Rows of c, and panels of it, may be shared out to several calls: every
 * element has the same bits. */
#define LLTM_DECLARE_MATRICES(name, type)                                                   \
  int32_t lltm_multiply_cpu_##name(                                                         \
      int64_t rows,          /* M >= 0 */                                                   \
      int64_t inner,         /* K >= 0 */                                                   \
      int64_t columns,       /* N >= 0 */                                                   \
      const type* a,         /* in  [M, K] */                                               \
      int64_t row_step,      /* of a */                                                     \
      int64_t column_step,   /* of a */                                                     \
      const type* b,         /* in  [K, N] */                                               \
      int64_t b_row_step,    /* of b */                                                     \
      int64_t b_column_step, /* of b */                                                     \
      type* c,               /* out [M, N], with adds in and out */                         \
      int64_t c_row_step,    /* of c, at least N; its columns lie side by side */           \
      int32_t adds           /* whether the product is added to c, or takes its place */    \
      ) LLTM_NOEXCEPT;                                                                      \
  int64_t lltm_panel_columns_cpu_##name(void) LLTM_NOEXCEPT;                                \
  int32_t lltm_pack_matrix_cpu_##name(                                                      \
      int64_t inner,       /* K >= 0 */                                                     \
      int64_t columns,     /* N >= 0 */                                                     \
      const type* b,       /* in  [K, N] */                                                 \
      int64_t row_step,    /* of b */                                                       \
      int64_t column_step, /* of b */                                                       \
      type* packed         /* out [ceil(N / panel_columns), K, panel_columns] */            \
      ) LLTM_NOEXCEPT;                                                                      \
  int32_t lltm_multiply_packed_cpu_##name(                                                  \
      int64_t rows, /* M, K, N, a and c as above */                                         \
      int64_t inner, int64_t columns, const type* a, int64_t row_step, int64_t column_step, \
      const type* packed, /* in  b, as pack_matrix gives it */                              \
      type* c, int64_t c_row_step, int32_t adds) LLTM_NOEXCEPT;

LLTM_DECLARE_MATRICES(float, float)
LLTM_DECLARE_MATRICES(double, double)

#undef LLTM_DECLARE_MATRICES

/* The same on a GPU, for large sizes, by tensor cores: a value is two halves, 22 bits, after its
 * row of a, or column of b, is scaled by a power of two. On average sums of many terms err less
 * than those of multiply-adds; one that float holds exactly may be off by a unit in the last place.
 * Values below 2^-28 of the largest of their row or column have an error of at most 2^-50 of it.
 * NaN and infinity come out as IEEE has it. Rows of a and columns of b lie dense, or rows of a and
 * rows of b, or columns of a and rows of b; and in fours, at addresses that are multiples of 16. */
int64_t lltm_multiply_workspace_cuda_float(
    int64_t rows, int64_t inner, int64_t columns /* how many floats it has on the current GPU, where
                                                    the product is then made; 0 if it has none */
    ) LLTM_NOEXCEPT;
int32_t lltm_multiply_cuda_float(
    int64_t rows,          /* M >= 0, a multiple of 4 if columns of a lie dense */
    int64_t inner,         /* K >= 0, the same if rows of a or columns of b do */
    int64_t columns,       /* N >= 0, the same if rows of b do */
    const float* a,        /* in  [M, K] */
    int64_t row_step,      /* of a; one of its steps is 1, the other a multiple of 4 */
    int64_t column_step,   /* of a */
    const float* b,        /* in  [K, N] */
    int64_t b_row_step,    /* of b; the same of its steps */
    int64_t b_column_step, /* of b */
    float* c,              /* out [M, N], with adds in and out */
    int64_t c_row_step,    /* of c, at least N */
    int32_t adds,          /* whether the product is added to c, or takes its place */
    float* workspace,      /* scratch */
    struct CUstream_st* stream) LLTM_NOEXCEPT;

/* The bytes of a vector register in the products above: 64, 32, or 16 where this CPU or the
 * compiler offers no more. How many rows are few depends on it. */
int32_t lltm_vector_bytes(void) LLTM_NOEXCEPT;

/* Whose processor this is; the libraries of products of others take different ways on them. */
#define LLTM_PROCESSOR_OTHER 0
#define LLTM_PROCESSOR_AMD 1
#define LLTM_PROCESSOR_AMD_ZEN5 2 /* or later: vectors of 64 bytes in one piece */
int32_t lltm_processor(void) LLTM_NOEXCEPT;

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_PRODUCTS_H_ */
