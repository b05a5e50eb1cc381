/* The C ABI of one step of a sequence; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_STEP_H_
#define LLTM_ABI_STEP_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

/* The step: one step of a sequence, in place. `compute` is float, and double for double. A step
 * carries the cell state in `cell`, so that half types round it for the caller only.
 *
 * Zoneout: where keep_h (keep_cell) is not 0 the unit keeps its old_h (its cell) in this step.
 *
 * step_forward: with new_cell, what backward needs is kept: the activations input_gate,
 * output_gate, candidate_cell in place of `gates`, and the new cell, which is that before zoneout.
 * Without, `gates` is only read.
 * step_backward: with neither grad_output nor d_h nothing flows through new_h. What keep_h hands
 * on to old_h is returned in d_h; the caller adds d_gates times the recurrent weights. Without
 * keep_h d_h is only read, and that product takes its place. */
#define LLTM_DECLARE_STEP(device, name, type, compute)                                             \
  int32_t lltm_step_forward_##device##_##name(                                                     \
      int64_t batch_size,       /* B >= 0 */                                                       \
      int64_t state_size,       /* H >= 0 */                                                       \
      type* gates,              /* in  [B, 3H] pre-activations with bias; out: see above */        \
      const uint8_t* keep_h,    /* in  [B, H], or null */                                          \
      const uint8_t* keep_cell, /* in  [B, H], or null */                                          \
      const type* old_h,        /* in  [B, H]; or null without keep_h; may be state_h */           \
      compute* cell,            /* in  [B, H] old; out: new */                                     \
      type* new_h,              /* out [B, H] */                                                   \
      type* state_h,            /* out [B, H] new_h once more, or null */                          \
      type* new_cell,           /* out [B, H], or null: see above */                               \
      struct CUstream_st* stream) LLTM_NOEXCEPT;                                                   \
  int32_t lltm_step_backward_##device##_##name(                                                    \
      int64_t batch_size,       /* B >= 0 */                                                       \
      int64_t state_size,       /* H >= 0 */                                                       \
      const type* grad_output,  /* in  [B, H], or null */                                          \
      const type* activations,  /* in  [B, 3H] as step_forward left them */                        \
      const type* new_cell,     /* in  [B, H] */                                                   \
      const uint8_t* keep_h,    /* in  [B, H], or null */                                          \
      const uint8_t* keep_cell, /* in  [B, H], or null */                                          \
      type* d_h,                /* in  [B, H] from later steps; out: see above. null: see above */ \
      compute* d_cell,          /* in  [B, H] of the new cell; out: of the old */                  \
      type* d_gates,            /* out [B, 3H] */                                                  \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_STEP(cpu, float, float, float)
LLTM_DECLARE_STEP(cpu, double, double, double)
LLTM_DECLARE_STEP(cpu, half, lltm_half, float)
LLTM_DECLARE_STEP(cpu, bfloat16, lltm_bfloat16, float)
LLTM_DECLARE_STEP(cuda, float, float, float)
LLTM_DECLARE_STEP(cuda, double, double, double)
LLTM_DECLARE_STEP(cuda, half, lltm_half, float)
LLTM_DECLARE_STEP(cuda, bfloat16, lltm_bfloat16, float)

#undef LLTM_DECLARE_STEP

/* step_fused: the same with the recurrent product inside, one launch a step; for small sizes. No
 * CPU twin. forward adds old_h times the recurrent weights to `gates` before it uses them, and
 * old_h is never null nor state_h. backward adds d_next_gates times them to d_h; later_d_h, when
 * not null, is what later steps hand on besides, and is replaced as d_h is. */
#define LLTM_DECLARE_STEP_FUSED(name, type, compute)                                     \
  int32_t lltm_step_fused_forward_cuda_##name(                                           \
      int64_t batch_size,       /* B >= 0 */                                             \
      int64_t state_size,       /* H >= 0 */                                             \
      const type* weights,      /* in  [3H, H] the first H columns of the weights */     \
      int64_t weights_stride,   /* from one row of them to the next, >= H */             \
      type* gates,              /* in  [B, 3H]; out: as in step_forward */               \
      const uint8_t* keep_h,    /* in  [B, H], or null */                                \
      const uint8_t* keep_cell, /* in  [B, H], or null */                                \
      const type* old_h,        /* in  [B, H] */                                         \
      compute* cell,            /* in  [B, H] old; out: new */                           \
      type* new_h,              /* out [B, H] */                                         \
      type* new_cell,           /* out [B, H], or null */                                \
      struct CUstream_st* stream) LLTM_NOEXCEPT;                                         \
  int32_t lltm_step_fused_backward_cuda_##name(                                          \
      int64_t batch_size,       /* B >= 0 */                                             \
      int64_t state_size,       /* H >= 0 */                                             \
      const type* weights_t,    /* in  [H, 3H] the transpose of the recurrent weights */ \
      const type* d_next_gates, /* in  [B, 3H] of the following step */                  \
      const type* grad_output,  /* in  [B, H], or null */                                \
      const type* activations,  /* in  [B, 3H] */                                        \
      const type* new_cell,     /* in  [B, H] */                                         \
      const uint8_t* keep_h,    /* in  [B, H], or null */                                \
      const uint8_t* keep_cell, /* in  [B, H], or null */                                \
      type* later_d_h,          /* in  [B, H]; out: see above; or null without keep_h */ \
      compute* d_cell,          /* in  [B, H] of the new cell; out: of the old */        \
      type* d_gates,            /* out [B, 3H] */                                        \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_STEP_FUSED(float, float, float)
LLTM_DECLARE_STEP_FUSED(double, double, double)
LLTM_DECLARE_STEP_FUSED(half, lltm_half, float)
LLTM_DECLARE_STEP_FUSED(bfloat16, lltm_bfloat16, float)

#undef LLTM_DECLARE_STEP_FUSED

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_STEP_H_ */
