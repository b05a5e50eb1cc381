// The exponential family, once, for host and device.
//
// It is our own: branch-free, so that host compilers vectorise a loop over units, and one body for
// both compilers, within two units in the last place. NaN goes through every function, and
// infinities give the limits that IEEE arithmetic on the textbook formula gives.
#ifndef LLTM_EXP_H_
#define LLTM_EXP_H_

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

// exp(-x) of a greater x rounds to 0.
LLTM_INLINE float exp_range(float) { return 105.0f; }
LLTM_INLINE double exp_range(double) { return 746.0; }

// exp(-x) of a greater x is nothing beside 1.
const int kExpNegligible = 40;

// A power of two and its inverse: the first times exp(-x), and the second times exp(x), are normal
// numbers for every x in the range, where exp(-x) is subnormal and exp(x) infinite.
LLTM_INLINE float large_power(float) { return 18446744073709551616.0f; }
LLTM_INLINE double large_power(double) { return 1.3407807929942597e154; }
LLTM_INLINE float small_power(float) { return 5.421010862427522e-20f; }
LLTM_INLINE double small_power(double) { return 7.458340731200207e-155; }

// ln(2) in two parts; n times the first part is exact.
LLTM_INLINE float ln2_high(float) { return 0.693359375f; }
LLTM_INLINE float ln2_low(float) { return -2.12194440e-4f; }
LLTM_INLINE double ln2_high(double) { return 6.93147180369123816490e-01; }
LLTM_INLINE double ln2_low(double) { return 1.90821492927058770002e-10; }

// Adding it to a small number rounds that to an integer, which is then in the low mantissa bits.
LLTM_INLINE float rounder(float) { return 12582912.0f; }
LLTM_INLINE double rounder(double) { return 6755399441055744.0; }

// exp(x) * power = scale * (1 + fraction), with scale a power of two and fraction = exp(r) - 1.
template <typename T>
struct ExpParts {
  T scale;
  T fraction;
};

// `power` is one of two, such that scale is a normal number. With kClose the fraction also has what
// the rounding of r left over.
template <bool kClose = false, typename T>
LLTM_INLINE ExpParts<T> exp_parts(T x, T power) {
  typedef typename ExpTraits<T>::Bits Bits;
  const T shifted = x * T(1.44269504088896340736) + rounder(x);
  const T n = shifted - rounder(x);
  const T high = x - n * ln2_high(x);
  const T low = n * ln2_low(x);
  const T r = high - low;
  ExpParts<T> parts;
  parts.fraction =
      kClose ? r + (r * r * exp_tail(r) + ((high - r) - low)) : r + r * r * exp_tail(r);
  parts.scale = bit_cast<T>(
      Bits((bit_cast<Bits>(shifted) << ExpTraits<T>::kMantissaBits) + bit_cast<Bits>(power)));
  return parts;
}

// Written so that NaN stays: a comparison with NaN is false.
template <typename T>
LLTM_INLINE T at_least(T lowest, T x) {
  return x < lowest ? lowest : x;
}

template <typename T>
LLTM_INLINE T at_most(T highest, T x) {
  return x > highest ? highest : x;
}

// |x|, and `magnitude` with the sign of x; -0 is negative.
template <typename T>
LLTM_INLINE T without_sign(T x) {
  typedef typename ExpTraits<T>::Bits Bits;
  return bit_cast<T>(Bits(bit_cast<Bits>(x) & ~bit_cast<Bits>(T(-0.0))));
}

template <typename T>
LLTM_INLINE T with_sign_of(T x, T magnitude) {
  typedef typename ExpTraits<T>::Bits Bits;
  return bit_cast<T>(
      Bits(bit_cast<Bits>(magnitude) | (bit_cast<Bits>(x) & bit_cast<Bits>(T(-0.0)))));
}

// Below, the order of the sums matters: each rounds once or not at all.

template <typename T>
LLTM_INLINE T exp_nonpositive(T x) {
  const ExpParts<T> e = exp_parts(at_least(-exp_range(x), x), large_power(x));
  return (e.scale * e.fraction + e.scale) * small_power(x);
}

// exp(x) - 1 for x <= 0, without the cancellation of the subtraction.
template <typename T>
LLTM_INLINE T expm1_nonpositive(T x) {
  const ExpParts<T> e = exp_parts(at_least(T(-kExpNegligible), x), T(1));
  return e.scale * e.fraction + (e.scale - T(1));
}

// 1 / (exp(-x) + 1); a reciprocal and a product are less work than a quotient on a GPU.
template <typename T>
LLTM_INLINE T sigmoid(T x) {
  const T one = small_power(x);
  const ExpParts<T> e = exp_parts(-at_least(-exp_range(x), at_most(T(kExpNegligible), x)), one);
  return T(1) / (e.scale + (e.scale * e.fraction + one)) * one;
}

// (1 - exp(-2|x|)) / (1 + exp(-2|x|))
template <typename T>
LLTM_INLINE T tanh_(T x) {
  const ExpParts<T> e =
      exp_parts<true>(at_least(T(-kExpNegligible), T(-2) * without_sign(x)), T(1));
  const T rest = e.scale * e.fraction;
  return with_sign_of(x, ((T(1) - e.scale) - rest) / ((T(1) + e.scale) + rest));
}

}  // namespace lltm

#endif  // LLTM_EXP_H_
