/* The C ABI of the cell; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_CELL_H_
#define LLTM_ABI_CELL_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

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

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_CELL_H_ */
