/* The C ABI of a sequence in one launch; the rules for all functions are in lltm.h. */
#ifndef LLTM_ABI_SEQUENCE_H_
#define LLTM_ABI_SEQUENCE_H_

#include "abi_types.h"

LLTM_EXTERN_C_BEGIN

/* sequence: all steps in one launch, where one block's registers hold the recurrent weights. No CPU
 * twin. sequence_fits says whether there is such a kernel: 1 or 0 (never for double). T = steps >=
 * 0. The steps are taken from the last to the first if `reverse` is not 0. Each is a step_forward
 * or step_backward without zoneout, its product with the recurrent weights included; without d_h_n
 * nothing flows through the last h, and d_cell becomes the gradient of the first cell. */
#define LLTM_DECLARE_SEQUENCE(name, type, compute)                                              \
  int32_t lltm_sequence_fits_cuda_##name(int64_t batch_size, int64_t state_size) LLTM_NOEXCEPT; \
  int32_t lltm_sequence_forward_cuda_##name(                                                    \
      int64_t steps, int64_t batch_size, int64_t state_size,                                    \
      const type* weights,          /* in  [3H, H] the first H columns of the weights */        \
      int64_t weights_stride,       /* from one row of them to the next, >= H */                \
      int32_t reverse, type* gates, /* in  [T, B, 3H]; out: as in step_forward */               \
      const type* h0,               /* in  [B, H] */                                            \
      compute* cell,                /* in  [B, H] old; out: new */                              \
      type* output,                 /* out [T, B, H] */                                         \
      type* new_cell,               /* out [T, B, H], or null */                                \
      struct CUstream_st* stream) LLTM_NOEXCEPT;                                                \
  int32_t lltm_sequence_backward_cuda_##name(                                                   \
      int64_t steps, int64_t batch_size, int64_t state_size,                                    \
      const type* weights,                      /* in  [3H, H] */                               \
      int64_t weights_stride,                   /* >= H */                                      \
      int32_t reverse, const type* grad_output, /* in  [T, B, H], or null */                    \
      const type* activations,                  /* in  [T, B, 3H] */                            \
      const type* new_cell,                     /* in  [T, B, H] */                             \
      const type* d_h_n,                        /* in  [B, H], or null */                       \
      compute* d_cell,                          /* in  [B, H]; out: see above */                \
      type* d_h0,                               /* out [B, H]; may be d_h_n */                  \
      type* d_gates,                            /* out [T, B, 3H] */                            \
      struct CUstream_st* stream) LLTM_NOEXCEPT;

LLTM_DECLARE_SEQUENCE(float, float, float)
LLTM_DECLARE_SEQUENCE(double, double, double)
LLTM_DECLARE_SEQUENCE(half, lltm_half, float)
LLTM_DECLARE_SEQUENCE(bfloat16, lltm_bfloat16, float)

#undef LLTM_DECLARE_SEQUENCE

LLTM_EXTERN_C_END

#endif /* LLTM_ABI_SEQUENCE_H_ */
