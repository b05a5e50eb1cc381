// The gate math with the GPU's approximations: relative errors below 1e-6, far below the rounding
// of half types and of TF32.
#ifndef LLTM_FAST_MATH_CUH_
#define LLTM_FAST_MATH_CUH_

#include "lltm_math.h"
#include "tensor_core.cuh"

namespace lltm {
namespace {

__device__ __forceinline__ float fast_sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// Near zero 1 - exp(-2|x|) cancels, and the odd series does not. __fdividef gives 0 for a divisor
// beyond 2^126: the exponential is of a value below zero here.
__device__ __forceinline__ float fast_tanh(float x) {
  const float square = x * x;
  const float series =
      x * (1.0f + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315))));
  const float e = __expf(-2.0f * fabsf(x));
  const float quotient = copysignf(__fdividef(1.0f - e, 1.0f + e), x);
  return square < 0.04f ? series : quotient;
}

__device__ __forceinline__ float fast_elu(float x) {
  const float series =
      x * (1.0f + x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120)))));
  const float below = x > -0.25f ? series : __expf(x) - 1.0f;
  return x > 0.0f ? x : below;
}

// Which of the two the numbers of a format deserve.
template <typename Format>
struct GridMath {
  __device__ static __forceinline__ CellState<float> cell_forward(float a_input, float a_output,
                                                                  float a_cell, float old_cell) {
    CellState<float> state;
    state.input_gate = fast_sigmoid(a_input);
    state.output_gate = fast_sigmoid(a_output);
    state.candidate_cell = fast_elu(a_cell);
    state.new_cell = old_cell + state.candidate_cell * state.input_gate;
    state.new_h = fast_tanh(state.new_cell) * state.output_gate;
    return state;
  }
  __device__ static __forceinline__ float tanh(float x) { return fast_tanh(x); }
};

template <>
struct GridMath<SplitFormat> {
  __device__ static __forceinline__ CellState<float> cell_forward(float a_input, float a_output,
                                                                  float a_cell, float old_cell) {
    return lltm::cell_forward(a_input, a_output, a_cell, old_cell);
  }
};

template <>
struct GridMath<SplitTf32Format> {
  __device__ static __forceinline__ float tanh(float x) { return tanh_(x); }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_FAST_MATH_CUH_
