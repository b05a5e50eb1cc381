// SwiGLU on a CPU.
#include "swiglu.h"
#include "swiglu_math.h"

#define SWIGLU_DEFINE_CPU(name, type)                                                             \
  int32_t swiglu_forward_cpu_##name(int64_t rows, int64_t width, const type* input, type* output, \
                                    CUstream_st*) noexcept {                                      \
    const int32_t status = swiglu::check(rows, width);                                            \
    if (status) return status;                                                                    \
    for (int64_t i = 0; i < rows * width; ++i) swiglu::forward(i, width, input, output);          \
    return 0;                                                                                     \
  }                                                                                               \
  int32_t swiglu_backward_cpu_##name(int64_t rows, int64_t width, const type* grad_output,        \
                                     const type* input, type* d_input, CUstream_st*) noexcept {   \
    const int32_t status = swiglu::check(rows, width);                                            \
    if (status) return status;                                                                    \
    for (int64_t i = 0; i < rows * width; ++i) {                                                  \
      swiglu::backward(i, width, grad_output, input, d_input);                                    \
    }                                                                                             \
    return 0;                                                                                     \
  }

SWIGLU_DEFINE_CPU(float, float)
SWIGLU_DEFINE_CPU(double, double)
