// The gate math, once, for host and device.
//
// The exponential family is our own: branch-free, so that host compilers vectorise a loop over
// units, and one body for both compilers. NaN goes through every function, and infinities give
// the limits that IEEE arithmetic on the textbook formula gives.
#ifndef LLTM_MATH_H_
#define LLTM_MATH_H_

#include <stdint.h>
#ifndef __CUDACC__
#include <string.h>
#endif

// Always inlined, and never merged by the linker: host files are compiled for different
// instruction sets, and a copy shared between them could run on a machine that lacks one.
#if defined(__CUDACC__)
#define LLTM_INLINE static __host__ __device__ __forceinline__
#elif defined(_MSC_VER)
#define LLTM_INLINE static __forceinline
#else
#define LLTM_INLINE static inline __attribute__((always_inline))
#endif

namespace lltm {

// What reduces an argument to n * ln(2) + r with |r| <= ln(2) / 2, per floating type.
template <typename T>
struct ExpTraits;

template <>
struct ExpTraits<float> {
  typedef uint32_t Bits;
  enum { kMantissaBits = 23 };
};

template <>
struct ExpTraits<double> {
  typedef uint64_t Bits;
  enum { kMantissaBits = 52 };
};

// memcpy is the portable reinterpretation; nvcc compiles it to a register move.
template <typename To, typename From>
LLTM_INLINE To bit_cast(From from) {
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// (exp(r) - 1 - r) / r^2 by its Taylor series: below an eighth of an ulp for |r| <= ln(2) / 2.
LLTM_INLINE float exp_tail(float r) {
  float q = 1.0f / 40320;
  q = q * r + 1.0f / 5040;
  q = q * r + 1.0f / 720;
  q = q * r + 1.0f / 120;
  q = q * r + 1.0f / 24;
  q = q * r + 1.0f / 6;
  return q * r + 0.5f;
}

LLTM_INLINE double exp_tail(double r) {
  double q = 1.0 / 87178291200.0;
  q = q * r + 1.0 / 6227020800.0;
  q = q * r + 1.0 / 479001600.0;
  q = q * r + 1.0 / 39916800.0;
  q = q * r + 1.0 / 3628800.0;
  q = q * r + 1.0 / 362880.0;
  q = q * r + 1.0 / 40320.0;
  q = q * r + 1.0 / 5040.0;
  q = q * r + 1.0 / 720.0;
  q = q * r + 1.0 / 120.0;
  q = q * r + 1.0 / 24.0;
  q = q * r + 1.0 / 6.0;
  return q * r + 0.5;
}

// The limits keep 2^n an ordinary exponent field: below the lower one exp is 0 (2^n with an
// all-zero field), above the upper one infinity (all ones), both without a branch.
LLTM_INLINE float exp_lowest(float) { return -88.0f; }
LLTM_INLINE double exp_lowest(double) { return -709.0; }
LLTM_INLINE float exp_highest(float) { return 89.0f; }
LLTM_INLINE double exp_highest(double) { return 710.0; }

// ln(2) in two parts; n times the first part is exact.
LLTM_INLINE float ln2_high(float) { return 0.693359375f; }
LLTM_INLINE float ln2_low(float) { return -2.12194440e-4f; }
LLTM_INLINE double ln2_high(double) { return 6.93147180369123816490e-01; }
LLTM_INLINE double ln2_low(double) { return 1.90821492927058770002e-10; }

// Adding it to a small number rounds that to an integer, which is then in the low mantissa bits.
LLTM_INLINE float rounder(float) { return 12582912.0f; }
LLTM_INLINE double rounder(double) { return 6755399441055744.0; }

// exp(x) = scale * (1 + fraction), with scale a power of two and fraction = exp(r) - 1.
template <typename T>
struct ExpParts {
  T scale;
  T fraction;
};

template <typename T>
LLTM_INLINE ExpParts<T> exp_parts(T x) {
  typedef typename ExpTraits<T>::Bits Bits;
  // Written so that NaN stays: a comparison with NaN is false.
  x = x > exp_highest(x) ? exp_highest(x) : x;
  x = x < exp_lowest(x) ? exp_lowest(x) : x;
  const T shifted = x * T(1.44269504088896340736) + rounder(x);
  const T n = shifted - rounder(x);
  const T r = (x - n * ln2_high(x)) - n * ln2_low(x);
  ExpParts<T> parts;
  parts.fraction = r + r * r * exp_tail(r);
  parts.scale = bit_cast<T>(
      Bits((bit_cast<Bits>(shifted) << ExpTraits<T>::kMantissaBits) + bit_cast<Bits>(T(1))));
  return parts;
}

template <typename T>
LLTM_INLINE T exp_(T x) {
  const ExpParts<T> e = exp_parts(x);
  return e.scale * e.fraction + e.scale;
}

// exp(x) - 1 for x <= 0, without the cancellation of the subtraction.
template <typename T>
LLTM_INLINE T expm1_nonpositive(T x) {
  const ExpParts<T> e = exp_parts(x);
  return e.scale * e.fraction + (e.scale - T(1));
}

template <typename T>
LLTM_INLINE T sigmoid(T x) {
  return T(1) / (T(1) + exp_(-x));
}

template <typename T>
LLTM_INLINE T tanh_(T x) {
  const T m = expm1_nonpositive(x > T(0) ? T(-2) * x : T(2) * x);
  const T magnitude = (T(0) - m) / (T(2) + m);
  return x < T(0) ? -magnitude : magnitude;
}

template <typename T>
LLTM_INLINE T elu(T x) {
  return x > T(0) ? x : expm1_nonpositive(x > T(0) ? T(0) : x);
}

// ELU'(x): 1 above zero, exp(x) below.
template <typename T>
LLTM_INLINE T elu_slope(T x) {
  return x > T(0) ? T(1) : exp_(x > T(0) ? T(0) : x);
}

template <typename T>
struct CellState {
  T new_h;
  T new_cell;
  T input_gate;
  T output_gate;
  T candidate_cell;
};

// One unit of the cell; a_* are pre-activations, bias included.
template <typename T>
LLTM_INLINE CellState<T> cell_forward(T a_input, T a_output, T a_cell, T old_cell) {
  CellState<T> state;
  state.input_gate = sigmoid(a_input);
  state.output_gate = sigmoid(a_output);
  state.candidate_cell = elu(a_cell);
  state.new_cell = old_cell + state.candidate_cell * state.input_gate;
  state.new_h = tanh_(state.new_cell) * state.output_gate;
  return state;
}

template <typename T>
struct CellGradient {
  T d_input;
  T d_output;
  T d_candidate;
  T d_old_cell;
};

// The mirror image: d_input, d_output, d_candidate are with respect to the pre-activations. Without
// grad_h nothing flows through new_h at all: a zero would turn into NaN where tanh(new_cell) is
// NaN. `slope` is ELU' of the candidate.
template <typename T>
LLTM_INLINE CellGradient<T> cell_gradient(bool has_grad_h, T grad_h, T grad_cell, T input_gate,
                                          T output_gate, T candidate_cell, T slope, T new_cell) {
  const T tanh_cell = tanh_(new_cell);
  CellGradient<T> gradient;
  const T through_h = grad_h * output_gate * (T(1) - tanh_cell * tanh_cell);
  const T d_output = grad_h * tanh_cell * (T(1) - output_gate) * output_gate;
  gradient.d_old_cell = has_grad_h ? through_h + grad_cell : grad_cell;
  gradient.d_input = gradient.d_old_cell * candidate_cell * (T(1) - input_gate) * input_gate;
  gradient.d_output = has_grad_h ? d_output : T(0);
  gradient.d_candidate = gradient.d_old_cell * input_gate * slope;
  return gradient;
}

// From the pre-activations.
template <typename T>
LLTM_INLINE CellGradient<T> cell_backward(bool has_grad_h, T grad_h, T grad_cell, T a_input,
                                          T a_output, T a_cell, T new_cell) {
  return cell_gradient(has_grad_h, grad_h, grad_cell, sigmoid(a_input), sigmoid(a_output),
                       elu(a_cell), elu_slope(a_cell), new_cell);
}

// From the activations: ELU'(x) = ELU(x) + 1 below zero, and 1 above.
template <typename T>
LLTM_INLINE CellGradient<T> cell_backward_saved(bool has_grad_h, T grad_h, T grad_cell,
                                                T input_gate, T output_gate, T candidate_cell,
                                                T new_cell) {
  const T slope = candidate_cell > T(0) ? T(1) : candidate_cell + T(1);
  return cell_gradient(has_grad_h, grad_h, grad_cell, input_gate, output_gate, candidate_cell,
                       slope, new_cell);
}

}  // namespace lltm

#endif  // LLTM_MATH_H_
