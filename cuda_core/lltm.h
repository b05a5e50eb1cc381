/* The C ABI of the LLTM cell: raw pointers in, raw pointers out.
 *
 * Valid C99 and C++14. Needs no CUDA and no framework header. This is the only header of this
 * folder that bindings may include.
 *
 * Letters: B = batch_size, H = state_size. All arrays are dense, row-major and aligned to their
 * element. [B, 3H] holds, for each row, the H input gates, the H output gates, the H candidates.
 *
 * The cell, for each of B*H units (a_* are the three gate pre-activations, gates + bias):
 *     input_gate = sigmoid(a_input)   output_gate = sigmoid(a_output)   candidate_cell =
 * ELU(a_cell) new_cell   = old_cell + candidate_cell * input_gate new_h      = tanh(new_cell) *
 * output_gate
 *
 * Names: lltm_<op>_<cpu|cuda>_<float|double|half|bfloat16>. CPU and CUDA functions share one
 * signature. Half types are computed in float and rounded once, when a result is stored.
 *
 * Memory: CUDA functions take device memory of the current device, CPU functions host memory. No
 * function allocates, synchronises, or changes the device. An output overlaps no other argument.
 * Every element of every output is written.
 *
 * Null: only pointers marked "or null" may be null. With B*H == 0 nothing is read, written or
 * launched, and every pointer may be null.
 *
 * Stream: CUDA work is enqueued on `stream` (null: the default stream), and the function returns
 * at once. CPU functions ignore it and return when the work is done.
 *
 * Status: 0 = success; -i = argument number i, counted from 1, is invalid; +e = CUDA error e (a
 * cudaError_t) of the launch. On a negative status nothing was read, written or launched.
 */
#ifndef LLTM_H_
#define LLTM_H_

#include <stdint.h>

#ifdef __cplusplus
#define LLTM_NOEXCEPT noexcept
extern "C" {
#else
#define LLTM_NOEXCEPT
#endif

/* A cudaStream_t, without CUDA's headers. */
struct CUstream_st;

/* IEEE binary16, and the upper half of a binary32; as torch's half types lie in memory. */
typedef struct {
  uint16_t bits;
} lltm_half;
typedef struct {
  uint16_t bits;
} lltm_bfloat16;

/* cell_forward: the three saved gate arrays may be null, each on its own.
 * cell_backward: recomputes the activations from `gates` and `bias`. A null incoming gradient
 * counts as zero. The outgoing d_gates are with respect to the pre-activations. There is no
 * forget gate: d_old_cell is the whole gradient of new_cell. */
#define LLTM_DECLARE_CELL(device, name, type)                               \
  int32_t lltm_cell_forward_##device##_##name(                              \
      int64_t batch_size,   /* B >= 0 */                                    \
      int64_t state_size,   /* H >= 0 */                                    \
      const type* gates,    /* in  [B, 3H] pre-activations without bias */  \
      const type* bias,     /* in  [3H], or null */                         \
      const type* old_cell, /* in  [B, H] */                                \
      type* new_h,          /* out [B, H] */                                \
      type* new_cell,       /* out [B, H] */                                \
      type* input_gate,     /* out [B, H], or null */                       \
      type* output_gate,    /* out [B, H], or null */                       \
      type* candidate_cell, /* out [B, H], or null */                       \
      struct CUstream_st* stream) LLTM_NOEXCEPT;                            \
  int32_t lltm_cell_backward_##device##_##name(                             \
      int64_t batch_size,    /* B >= 0 */                                   \
      int64_t state_size,    /* H >= 0 */                                   \
      const type* grad_h,    /* in  [B, H], or null */                      \
      const type* grad_cell, /* in  [B, H], or null */                      \
      const type* gates,     /* in  [B, 3H] pre-activations without bias */ \
      const type* bias,      /* in  [3H], or null */                        \
      const type* new_cell,  /* in  [B, H] */                               \
      type* d_gates,         /* out [B, 3H] */                              \
      type* d_old_cell,      /* out [B, H] */                               \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_CELL(cpu, float, float)
LLTM_DECLARE_CELL(cpu, double, double)
LLTM_DECLARE_CELL(cpu, half, lltm_half)
LLTM_DECLARE_CELL(cpu, bfloat16, lltm_bfloat16)
LLTM_DECLARE_CELL(cuda, float, float)
LLTM_DECLARE_CELL(cuda, double, double)
LLTM_DECLARE_CELL(cuda, half, lltm_half)
LLTM_DECLARE_CELL(cuda, bfloat16, lltm_bfloat16)

#undef LLTM_DECLARE_CELL

/* cell_fused_forward: the products too, in one launch; for small sizes. I = input_features. There
 * is no CPU twin: a call costs nothing there. `gates`, for cell_backward, may be null. */
#define LLTM_DECLARE_CELL_FUSED(name, type)                                        \
  int32_t lltm_cell_fused_forward_cuda_##name(                                     \
      int64_t batch_size,     /* B >= 0 */                                         \
      int64_t state_size,     /* H >= 0 */                                         \
      int64_t input_features, /* I >= 0 */                                         \
      const type* input,      /* in  [B, I] */                                     \
      const type* weights,    /* in  [3H, H + I] columns: those of old_h, input */ \
      const type* bias,       /* in  [3H], or null */                              \
      const type* old_h,      /* in  [B, H] */                                     \
      const type* old_cell,   /* in  [B, H] */                                     \
      type* new_h,            /* out [B, H] */                                     \
      type* new_cell,         /* out [B, H] */                                     \
      type* gates,            /* out [B, 3H] without bias, or null */              \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_CELL_FUSED(float, float)
LLTM_DECLARE_CELL_FUSED(double, double)
LLTM_DECLARE_CELL_FUSED(half, lltm_half)
LLTM_DECLARE_CELL_FUSED(bfloat16, lltm_bfloat16)

#undef LLTM_DECLARE_CELL_FUSED

/* The products alone, on a CPU, for few rows: up to 16 or so. I = input_features. There are no CUDA
 * twins: cuBLAS is faster.
 * gate_products: gates = [old_h, input] weights^T.
 * gradient_products: d_old_h and d_input are the column blocks of d_gates weights, d_weights =
 * d_gates^T [old_h, input], d_bias the sum of d_gates over the batch. What is null is not computed.
 * Here an empty sum is zero: with B == 0 or H == 0 inputs may be null, outputs are zeros. */
#define LLTM_DECLARE_PRODUCTS(name, type)                                             \
  int32_t lltm_gate_products_cpu_##name(                                              \
      int64_t batch_size,     /* B >= 0 */                                            \
      int64_t state_size,     /* H >= 0 */                                            \
      int64_t input_features, /* I >= 0 */                                            \
      const type* input,      /* in  [B, I] */                                        \
      const type* weights,    /* in  [3H, H + I] columns: those of old_h, input */    \
      const type* old_h,      /* in  [B, H] */                                        \
      type* gates             /* out [B, 3H] without bias */                          \
      ) LLTM_NOEXCEPT;                                                                \
  int32_t lltm_gradient_products_cpu_##name(                                          \
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
      type* d_old_h           /* out [B, H], or null */                               \
      ) LLTM_NOEXCEPT;

LLTM_DECLARE_PRODUCTS(float, float)
LLTM_DECLARE_PRODUCTS(double, double)

#undef LLTM_DECLARE_PRODUCTS

/* The bytes of a vector register in the products above: 64, 32, or 16 where this CPU or the
 * compiler offers no more. How many rows are few depends on it. */
int32_t lltm_vector_bytes(void) LLTM_NOEXCEPT;

/* The GPU architectures the CUDA functions were compiled for, such as "800,900"; "" when the
 * compiler does not say (nvcc before 11.5). A static string. */
const char* lltm_cuda_archs(void) LLTM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* LLTM_H_ */
