// float on tensor cores as TF32, of any exponent, laid out as tensor_core.cuh says: a step of K
// is 8.
#ifndef LLTM_TENSOR_CORE_TF32_CUH_
#define LLTM_TENSOR_CORE_TF32_CUH_

#include "tensor_core.cuh"

namespace lltm {
namespace {

__device__ __forceinline__ uint32_t rounded_to_tf32(uint32_t bits) {
  return (bits + 0x1000u) & 0xffffe000u;  // a NaN has to have its upper bits clear but one
}

// A NaN with few bits, which stays one when it is rounded, and does not look like an absent word.
__device__ __forceinline__ uint32_t plain_bits(float x) {
  return x == x ? __float_as_uint(x) : 0x7fc00000u;
}

__device__ __forceinline__ void mma_tf32(float* c, uint4 a, uint32_t b0, uint32_t b1) {
  LLTM_MMA("m16n8k8", "tf32", c, a, b0, b1);
}

// At the accuracy of TF32. A run is the three gates of two units, a step of K a gate. The 19 bits
// of each are sent in 8 bytes: the first word has the first gate and, lowest, the upper 12 bits of
// the second, the other word the third gate and the lower 7. The bit between says the lap.
struct Tf32Format {
  typedef FastMath Math;
  struct Units {
    uint4 gates[3];
  };
  struct Run {
    uint32_t values[6];
  };
  typedef uint4 Sent;
  static const int kRun = 6;
  static const int kWordBytes = 4;
  static const bool kGatesTogether = true;
  static const uint32_t kLapBit = 0x1000;
  static const bool kLongRun = false;

  __device__ static __forceinline__ uint32_t rounded(float x) {
    return rounded_to_tf32(plain_bits(x));
  }
  __device__ static __forceinline__ Run run(const float* v) {
    return {
        {rounded(v[0]), rounded(v[1]), rounded(v[2]), rounded(v[3]), rounded(v[4]), rounded(v[5])}};
  }
  __device__ static __forceinline__ Units units(const Run& even, const Run& odd) {
    Units units;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      units.gates[gate] = make_uint4(even.values[gate], odd.values[gate], even.values[3 + gate],
                                     odd.values[3 + gate]);
    }
    return units;
  }
  // The gates of a pair of units.
  __device__ static __forceinline__ Sent sent(const float* x, const float* y) {
    return make_uint4(first_word(x), other_word(x), first_word(y), other_word(y));
  }
  template <typename Sums>
  __device__ static __forceinline__ void multiply(Sums& sums, const Units& a, uint4 b) {
    mma_tf32(sums.main, a.gates[0], main_of(b.x), main_of(b.z));
    mma_tf32(sums.other(), a.gates[1], second_of(b.x, b.y), second_of(b.z, b.w));
    mma_tf32(sums.main, a.gates[2], main_of(b.y), main_of(b.w));
  }
  template <typename Sums>
  __device__ static __forceinline__ float total(const Sums& sums, int i) {
    return sums.total(i);
  }

 private:
  __device__ static __forceinline__ uint32_t first_word(const float* gates) {
    return rounded(gates[0]) | rounded(gates[1]) >> 20;
  }
  __device__ static __forceinline__ uint32_t other_word(const float* gates) {
    return rounded(gates[2]) | (rounded(gates[1]) >> 8 & 0xfe0u);
  }
  __device__ static __forceinline__ uint32_t main_of(uint32_t word) { return word & 0xffffe000u; }
  __device__ static __forceinline__ uint32_t second_of(uint32_t first, uint32_t other) {
    return first << 20 | (other << 8 & 0xfe000u);
  }
};

// At the accuracy of float: by two TF32 values, three products. A run is four values. Two products
// of main parts are added up by the tensor core, which truncates, and then in float; as in
// SplitFormat what truncation takes away is given back.
struct SplitTf32Format {
  typedef CloseMath Math;
  typedef UnitPair Units;
  typedef uint2 Sent;
  static const int kRun = 4;
  static const int kWordBytes = 4;
  static const bool kGatesTogether = false;
  static const uint32_t kLapBit = 0;
  static const bool kLongRun = false;
  static constexpr float kTruncated = 0.85f / (1 << 24);  // measured on an H200

  __device__ static __forceinline__ uint4 run(const float* v) {
    return make_uint4(plain_bits(v[0]), plain_bits(v[1]), plain_bits(v[2]), plain_bits(v[3]));
  }
  __device__ static __forceinline__ Sent sent(float x, float y) {
    return make_uint2(without_low_bit(plain_bits(x)), without_low_bit(plain_bits(y)));
  }
  __device__ static __forceinline__ Units units(uint4 even, uint4 odd) {
    return {make_uint4(even.x, odd.x, even.y, odd.y), make_uint4(even.z, odd.z, even.w, odd.w)};
  }
  template <typename Sums>
  __device__ static __forceinline__ void multiply(Sums& sums, const Units& a, uint4 b) {
    float fresh[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    step(sums.cross, fresh, a.first, b.x, b.y);
    step(sums.cross, fresh, a.second, b.z, b.w);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.main[i] += fresh[i];
  }
  template <typename Sums>
  __device__ static __forceinline__ float total(const Sums& sums, int i) {
    return sums.main[i] + fmaf(sums.main[i], kTruncated, sums.cross[i]);
  }

 private:
  // Two TF32 values do not keep it either. Rounded to even, for truncation would be of one sign.
  __device__ static __forceinline__ uint32_t without_low_bit(uint32_t bits) {
    return (bits + (bits >> 1 & 1u)) & ~1u;
  }
  __device__ static __forceinline__ void step(float* cross, float* main, uint4 a, uint32_t b0,
                                              uint32_t b1) {
    const uint4 high = make_uint4(rounded_to_tf32(a.x), rounded_to_tf32(a.y), rounded_to_tf32(a.z),
                                  rounded_to_tf32(a.w));
    const uint4 low =
        make_uint4(rest(a.x, high.x), rest(a.y, high.y), rest(a.z, high.z), rest(a.w, high.w));
    const uint32_t high0 = rounded_to_tf32(b0);
    const uint32_t high1 = rounded_to_tf32(b1);
    mma_tf32(cross, low, high0, high1);
    mma_tf32(main, high, high0, high1);
    mma_tf32(cross, high, rest(b0, high0), rest(b1, high1));
  }
  __device__ static __forceinline__ uint32_t rest(uint32_t bits, uint32_t rounded) {
    return __float_as_uint(__uint_as_float(bits) - __uint_as_float(rounded));
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_TENSOR_CORE_TF32_CUH_
