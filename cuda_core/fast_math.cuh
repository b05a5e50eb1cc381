// The gate math by the GPU's own exponential. The fast functions have relative errors below 3e-6
// for |x| < 12, far below the rounding of half types and of TF32; the close ones a few units in the
// last place of a float.
#ifndef LLTM_FAST_MATH_CUH_
#define LLTM_FAST_MATH_CUH_

#include "lltm_math.h"

namespace lltm {
namespace {

__device__ __forceinline__ float exp2f_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// As __fdividef(1, x), which scales x lest it is below the least normal float: here it is one or
// more.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Both are computed: a branch would wait for both where lanes differ.
__device__ __forceinline__ float select(float where_not_negative, float else_this, float x) {
  float y;
  asm("slct.f32.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(where_not_negative), "f"(else_this), "f"(x));
  return y;
}

// What is below the least normal float becomes zero.
__device__ __forceinline__ float fast_exp(float x) { return exp2f_approximate(x * 1.44269502f); }

__device__ __forceinline__ float fast_sigmoid(float x) { return reciprocal(1.0f + fast_exp(-x)); }

// tanh(x) * y: what does not wait for the exponential is done while that is on its way. Near zero
// 1 - exp(-2|x|) cancels, and the odd series does not.
__device__ __forceinline__ float fast_tanh_times(float x, float y) {
  const float square = x * x;
  const float series =
      x * (1.0f + square * (-1.0f / 3 + square * (2.0f / 15 + square * (-17.0f / 315))));
  const float near = series * y;
  const float e = fast_exp(-2.0f * fabsf(x));
  const float quotient = (1.0f - e) * (x < 0.0f ? -y : y) * reciprocal(1.0f + e);
  return square < 0.04f ? near : quotient;
}
__device__ __forceinline__ float fast_tanh(float x) { return fast_tanh_times(x, 1.0f); }

__device__ __forceinline__ float fast_elu(float x) {
  const float series =
      x * (1.0f + x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120)))));
  const float below = x > -0.25f ? series : fast_exp(x) - 1.0f;
  return x > 0.0f ? x : below;
}

// exp(factor * x), the product with log2(e) to twice its precision; factor is a power of two.
__device__ __forceinline__ float close_exp(float x, float factor = 1.0f) {
  const float log2_e = 1.44269502f * factor;
  const float product = x * log2_e;
  const float rest = fmaf(x, 1.92596303e-8f * factor, fmaf(x, log2_e, -product)) * 0.693147181f;
  const float power = exp2f_approximate(product);
  // Not where it is zero or infinite: the rest may then be anything.
  return fabsf(product) < 126.0f ? fmaf(power, rest, power) : power;
}

__device__ __forceinline__ float close_sigmoid(float x) {
  return reciprocal(1.0f + close_exp(x, -1.0f));
}

__device__ __forceinline__ float close_tanh_times(float x, float y) {
  const float square = x * x;
  float series = square * -0.00886323540f + 0.0218694885f;
  series = series * square - 0.0539682540f;
  series = series * square + 0.133333333f;
  series = series * square - 0.333333333f;
  const float near = fmaf(x * square, series, x) * y;
  const float e = close_exp(fabsf(x), -2.0f);
  const float quotient = (1.0f - e) * (x < 0.0f ? -y : y) * reciprocal(1.0f + e);
  return square < 0.16f ? near : quotient;
}
__device__ __forceinline__ float close_tanh(float x) { return close_tanh_times(x, 1.0f); }

__device__ __forceinline__ float close_elu(float x) {
  float series = x * (1.0f / 40320) + 1.0f / 5040;
  series = series * x + 1.0f / 720;
  series = series * x + 1.0f / 120;
  series = series * x + 1.0f / 24;
  series = series * x + 1.0f / 6;
  series = series * x + 0.5f;
  const float below = select(fmaf(x * x, series, x), close_exp(x) - 1.0f, x + 0.7f);
  return x > 0.0f ? x : below;
}

struct FastMath {
  __device__ static __forceinline__ float sigmoid(float x) { return fast_sigmoid(x); }
  __device__ static __forceinline__ float tanh(float x) { return fast_tanh(x); }
  __device__ static __forceinline__ float elu(float x) { return fast_elu(x); }
  __device__ static __forceinline__ float tanh_times(float x, float y) {
    return fast_tanh_times(x, y);
  }
};

struct CloseMath {
  __device__ static __forceinline__ float sigmoid(float x) { return close_sigmoid(x); }
  __device__ static __forceinline__ float tanh(float x) { return close_tanh(x); }
  __device__ static __forceinline__ float elu(float x) { return close_elu(x); }
  __device__ static __forceinline__ float tanh_times(float x, float y) {
    return close_tanh_times(x, y);
  }
};

// That of lltm_math.h, for doubles.
struct ExactMath {
  __device__ static __forceinline__ double sigmoid(double x) { return lltm::sigmoid(x); }
  __device__ static __forceinline__ double tanh(double x) { return tanh_(x); }
  __device__ static __forceinline__ double elu(double x) { return lltm::elu(x); }
  __device__ static __forceinline__ double tanh_times(double x, double y) { return tanh_(x) * y; }
};

template <typename Math, typename Value>
__device__ __forceinline__ CellState<Value> cell_forward_by(Value a_input, Value a_output,
                                                            Value a_cell, Value old_cell) {
  CellState<Value> state;
  state.input_gate = Math::sigmoid(a_input);
  state.output_gate = Math::sigmoid(a_output);
  state.candidate_cell = Math::elu(a_cell);
  state.new_cell = old_cell + state.candidate_cell * state.input_gate;
  state.new_h = Math::tanh_times(state.new_cell, state.output_gate);
  return state;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_FAST_MATH_CUH_
