// The number formats in which tensor cores multiply, and how values become their operands; doubles
// are in tensor_core_double.cuh.
//
// A product is A (16 units, K) times B (K, 8 rows), K in runs: a lane holds kRun neighbouring
// values of K of one unit or row in 16 bytes. Both operands have their K in the same order, so the
// order is free.
#ifndef LLTM_TENSOR_CORE_CUH_
#define LLTM_TENSOR_CORE_CUH_

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "fast_math.cuh"
#include "lltm_types.h"

namespace lltm {
namespace {

// Instructions of sm_80, tried on sm_90 alone. Elsewhere the kernels are empty, and never launched.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1000
#define LLTM_TENSOR_CORES 1
#endif

#ifdef LLTM_TENSOR_CORES
#define LLTM_MMA(shape, type, c, a0, a1, a2, a3, b0, b1)           \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type      \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])             \
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#else
#define LLTM_MMA(shape, type, c, a0, a1, a2, a3, b0, b1)
#endif

// Two values rounded to a type of 16 bits, in one word. A NaN becomes 0x7fff.
template <typename S>
__device__ __forceinline__ uint32_t rounded_pair(float low, float high);

#ifdef LLTM_TENSOR_CORES
#define LLTM_ROUND_PAIR(type) \
  asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low))
#else
#define LLTM_ROUND_PAIR(type)
#endif

template <>
__device__ __forceinline__ uint32_t rounded_pair<lltm_half>(float low, float high) {
  uint32_t word = 0;
  LLTM_ROUND_PAIR("f16");
  return word;
}
template <>
__device__ __forceinline__ uint32_t rounded_pair<lltm_bfloat16>(float low, float high) {
  uint32_t word = 0;
  LLTM_ROUND_PAIR("bf16");
  return word;
}

__device__ __forceinline__ float unpack_half(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// The sums of 16 units and 8 rows: main[0], main[1] of unit 2g, rows 2q and 2q + 1; main[2],
// main[3] of unit 2g + 1; in lane 4g + q. The small ones of a split format are added in the end.
template <typename Value>
struct Sums {
  Value main[4];
  Value cross[4];
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 4; ++i) main[i] = cross[i] = 0;
  }
};

// A lane's run of unit 2g and of unit 2g + 1.
struct UnitPair {
  uint4 even, odd;
};

// 16-bit values. A run is 8 of them, two steps of K = 16.
template <typename Format>
struct SixteenBits {
  static const int kRun = 8;
  static const int kWordBytes = 4;
  static const int kWordsOfPair = 1;

  __device__ static __forceinline__ uint4 run(const float* v) {
    return make_uint4(Format::pair(v[0], v[1]), Format::pair(v[2], v[3]), Format::pair(v[4], v[5]),
                      Format::pair(v[6], v[7]));
  }
  __device__ static __forceinline__ void multiply(Sums<float>& sums, const UnitPair& a, uint4 b) {
    Format::mma(sums.main, a.even.x, a.odd.x, a.even.y, a.odd.y, b.x, b.y);
    Format::mma(sums.main, a.even.z, a.odd.z, a.even.w, a.odd.w, b.z, b.w);
  }
  __device__ static __forceinline__ float total(const Sums<float>& sums, int i) {
    return sums.main[i];
  }
};

struct Bfloat16Format : SixteenBits<Bfloat16Format> {
  typedef FastMath Math;
  static const bool kScaled = false;
  __device__ static __forceinline__ uint32_t pair(float low, float high) {
    return rounded_pair<lltm_bfloat16>(low, high);
  }
  __device__ static __forceinline__ void mma(float* c, uint32_t a0, uint32_t a1, uint32_t a2,
                                             uint32_t a3, uint32_t b0, uint32_t b1) {
    LLTM_MMA("m16n8k16", "bf16", c, a0, a1, a2, a3, b0, b1);
  }
};

struct HalfFormat : SixteenBits<HalfFormat> {
  typedef FastMath Math;
  static const bool kScaled = false;
  __device__ static __forceinline__ uint32_t pair(float low, float high) {
    return rounded_pair<lltm_half>(low, high);
  }
  __device__ static __forceinline__ void mma(float* c, uint32_t a0, uint32_t a1, uint32_t a2,
                                             uint32_t a3, uint32_t b0, uint32_t b1) {
    LLTM_MMA("m16n8k16", "f16", c, a0, a1, a2, a3, b0, b1);
  }
};

// float as TF32 has it, for values that fit the exponents of a half: its mantissa is as long.
struct ShortFloatFormat : HalfFormat {
  static const bool kScaled = true;
};

// float by two halves, high + low / 2048, together 22 bits: three products of halves. For values
// that fit their exponents. A run is four values, high and low pairs in turn. The tensor core
// truncates where it adds to its accumulator: every product of high parts starts at zero and is
// added to the sum in float.
struct SplitFormat {
  typedef CloseMath Math;
  static const bool kScaled = true;
  static const int kRun = 4;
  static const int kWordBytes = 4;
  static const int kWordsOfPair = 2;

  __device__ static __forceinline__ uint2 split_pair(float low, float high) {
    const uint32_t main = rounded_pair<lltm_half>(low, high);
    return make_uint2(main, rounded_pair<lltm_half>((low - unpack_half(main)) * 2048.0f,
                                                    (high - unpack_half(main >> 16)) * 2048.0f));
  }
  __device__ static __forceinline__ uint4 run(const float* v) {
    const uint2 first = split_pair(v[0], v[1]);
    const uint2 second = split_pair(v[2], v[3]);
    return make_uint4(first.x, first.y, second.x, second.y);
  }
  __device__ static __forceinline__ void multiply(Sums<float>& sums, const UnitPair& a, uint4 b) {
    float fresh[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    HalfFormat::mma(sums.cross, a.even.y, a.odd.y, a.even.w, a.odd.w, b.x, b.z);
    HalfFormat::mma(fresh, a.even.x, a.odd.x, a.even.z, a.odd.z, b.x, b.z);
    HalfFormat::mma(sums.cross, a.even.x, a.odd.x, a.even.z, a.odd.z, b.y, b.w);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.main[i] += fresh[i];
  }
  __device__ static __forceinline__ float total(const Sums<float>& sums, int i) {
    return sums.main[i] + sums.cross[i] * (1.0f / 2048);
  }
};

// float as TF32, of any exponent: a run is four values, two steps of K = 8.
__device__ __forceinline__ uint32_t rounded_to_tf32(uint32_t bits) {
  return (bits + 0x1000u) & 0xffffe000u;  // a NaN has to have its upper bits clear but one
}

__device__ __forceinline__ uint32_t rest_of_tf32(uint32_t bits, uint32_t rounded) {
  return __float_as_uint(__uint_as_float(bits) - __uint_as_float(rounded));
}

template <typename Format>
struct Tf32Run {
  static const int kRun = 4;
  static const int kWordBytes = 4;

  __device__ static __forceinline__ uint4 run(const float* v) {
    return make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                      __float_as_uint(v[3]));
  }
  __device__ static __forceinline__ void multiply(Sums<float>& sums, const UnitPair& a, uint4 b) {
    const uint32_t first[4] = {a.even.x, a.odd.x, a.even.y, a.odd.y};
    const uint32_t second[4] = {a.even.z, a.odd.z, a.even.w, a.odd.w};
    Format::step(sums, first, b.x, b.y);
    Format::step(sums, second, b.z, b.w);
  }
  __device__ static __forceinline__ void mma(float* c, const uint32_t* a, uint32_t b0,
                                             uint32_t b1) {
    LLTM_MMA("m16n8k8", "tf32", c, a[0], a[1], a[2], a[3], b0, b1);
  }
};

struct Tf32Format : Tf32Run<Tf32Format> {
  typedef FastMath Math;
  __device__ static __forceinline__ void step(Sums<float>& sums, const uint32_t* a, uint32_t b0,
                                              uint32_t b1) {
    uint32_t rounded[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) rounded[i] = rounded_to_tf32(a[i]);
    mma(sums.main, rounded, rounded_to_tf32(b0), rounded_to_tf32(b1));
  }
  __device__ static __forceinline__ float total(const Sums<float>& sums, int i) {
    return sums.main[i];
  }
};

// float by two TF32 values, three products.
struct SplitTf32Format : Tf32Run<SplitTf32Format> {
  typedef CloseMath Math;
  __device__ static __forceinline__ void step(Sums<float>& sums, const uint32_t* a, uint32_t b0,
                                              uint32_t b1) {
    uint32_t main[4], rest[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      main[i] = rounded_to_tf32(a[i]);
      rest[i] = rest_of_tf32(a[i], main[i]);
    }
    const uint32_t main0 = rounded_to_tf32(b0);
    const uint32_t main1 = rounded_to_tf32(b1);
    float fresh[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    mma(sums.cross, rest, main0, main1);
    mma(fresh, main, main0, main1);
    mma(sums.cross, main, rest_of_tf32(b0, main0), rest_of_tf32(b1, main1));
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.main[i] += fresh[i];
  }
  __device__ static __forceinline__ float total(const Sums<float>& sums, int i) {
    return sums.main[i] + sums.cross[i];
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_TENSOR_CORE_CUH_
