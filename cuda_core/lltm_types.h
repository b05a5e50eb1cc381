// The types that arrays are stored in, and the type that their values are computed in: float for
// float, half and bfloat16, double for double. A half value is rounded once, when it is stored.
#ifndef LLTM_TYPES_H_
#define LLTM_TYPES_H_

#include "lltm.h"
#include "lltm_math.h"
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace lltm {

template <typename S>
struct ComputeTypeOf {
  typedef float Type;
};

template <>
struct ComputeTypeOf<double> {
  typedef double Type;
};

template <typename S>
using ComputeType = typename ComputeTypeOf<S>::Type;

LLTM_INLINE float load(float value) { return value; }
LLTM_INLINE double load(double value) { return value; }
LLTM_INLINE float load(lltm_bfloat16 value) {
  return bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
LLTM_INLINE float load(lltm_half value) {
#if defined(__CUDA_ARCH__)
  return __half2float(__ushort_as_half(value.bits));
#else
  // Shifted into place, a half is a float that is 2^112 times too small, subnormals included; only
  // infinity and NaN need their exponent filled up.
  const uint32_t bits = value.bits;
  const float scaled = bit_cast<float>((bits & 0x7fffu) << 13) * 5.192296858534828e33f;
  const uint32_t special = (bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return bit_cast<float>(bit_cast<uint32_t>(scaled) | special | (bits & 0x8000u) << 16);
#endif
}

// store(value, &array[i]): to nearest, ties to even. An overload per storage type.
LLTM_INLINE void store(float value, float* to) { *to = value; }
LLTM_INLINE void store(double value, double* to) { *to = value; }
LLTM_INLINE void store(float value, lltm_bfloat16* to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;  // in which the instruction is faster than alone
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
  to->bits = static_cast<uint16_t>(pair);
#else
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to->bits = static_cast<uint16_t>(value != value ? 0x7fc0u : rounded);
#endif
}
LLTM_INLINE void store(float value, lltm_half* to) {
#if defined(__CUDA_ARCH__)
  to->bits = __half_as_ushort(__float2half_rn(value));
#else
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal halves: the exponent is rebased, and half a unit added with ties to even. What rounds
  // above the largest half becomes infinity by itself.
  const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal halves: adding 0.5 lines the mantissa up, and rounds it.
  const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const uint32_t result = magnitude >= 0x47800000u ? special : finite;
  to->bits = static_cast<uint16_t>(result | (bits >> 16 & 0x8000u));
#endif
}

}  // namespace lltm

#endif  // LLTM_TYPES_H_
