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

/* The step: one step of a sequence, in place. `compute` is float, and double for double. A step
 * carries the cell state in `cell`, so that half types round it for the caller only.
 *
 * Zoneout: where keep_h (keep_cell) is not 0 the unit keeps its old_h (its cell) in this step.
 *
 * step_forward: with new_cell, what backward needs is kept: the activations input_gate,
 * output_gate, candidate_cell in place of `gates`, and the new cell, which is that before zoneout.
 * Without, `gates` is only read.
 * step_backward: with neither grad_output nor d_h nothing flows through new_h. What keep_h hands
 * on to old_h is returned in d_h; the caller adds d_gates times the recurrent weights. */
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

/* The GPU architectures the CUDA functions were compiled for, such as "800,900"; "" when the
 * compiler does not say (nvcc before 11.5). A static string. */
const char* lltm_cuda_archs(void) LLTM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* LLTM_H_ */
