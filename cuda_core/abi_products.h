/* The C ABI of the cell's products with its weights; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_PRODUCTS_H_
#define LLTM_ABI_PRODUCTS_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

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

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_PRODUCTS_H_ */
