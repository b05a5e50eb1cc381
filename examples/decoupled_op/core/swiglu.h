/* SwiGLU: output = gate * sigmoid(gate) * value. Valid C99 and C++14; knows no framework.
 *
 * rows >= 0, width >= 0. A row of the input is [gate, value], each of `width` numbers.
 * All arrays are dense and on the function's device. Inputs and outputs do not overlap.
 * Every element of an output is written. The stream is ignored on a CPU; on a GPU the work is
 * queued on it, on the current device, and nothing waits for it.
 *
 * Returns 0, or -i if argument i is invalid, or a CUDA error.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
#define SWIGLU_NOEXCEPT noexcept
extern "C" {
#else
#define SWIGLU_NOEXCEPT
#endif

struct CUstream_st; /* what cudaStream_t points to, so that this header needs no CUDA */

#define SWIGLU_DECLARE(device, name, type)                                                   \
  int32_t swiglu_forward_##device##_##name(int64_t rows, int64_t width,                      \
                                           const type* input, /* [rows, 2 * width] */        \
                                           type* output,      /* [rows, width] */            \
                                           struct CUstream_st* stream) SWIGLU_NOEXCEPT;      \
  int32_t swiglu_backward_##device##_##name(int64_t rows, int64_t width,                     \
                                            const type* grad_output, /* [rows, width] */     \
                                            const type* input,       /* [rows, 2 * width] */ \
                                            type* d_input,           /* [rows, 2 * width] */ \
                                            struct CUstream_st* stream) SWIGLU_NOEXCEPT;

SWIGLU_DECLARE(cpu, float, float)
SWIGLU_DECLARE(cpu, double, double)
SWIGLU_DECLARE(cuda, float, float)
SWIGLU_DECLARE(cuda, double, double)

#undef SWIGLU_DECLARE

#ifdef __cplusplus
}
#endif
