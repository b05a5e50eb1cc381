// The number formats in which tensor cores multiply, and how values become their operands. TF32 and
// doubles are in files of their own.
//
// A product is A (16 units, K) times B (K, 8 rows), K in runs: a lane holds kRun neighbouring
// values of K of one unit or row, of B in 16 bytes. Both operands have their K in the same order,
// so the order is free. `sent` makes a pair of neighbouring values the words of B, and `run` the
// values of A, which takes many instructions where kLongRun says so. kLapBit: of a word, for the
// exchange; zero where all bits are needed.
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
#define LLTM_MMA(shape, type, c, a, b0, b1)                        \
  asm("mma.sync.aligned." shape ".row.col.f32." type "." type      \
      ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])             \
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1))
#else
#define LLTM_MMA(shape, type, c, a, b0, b1)
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
__device__ __forceinline__ float rounded_half(float x) {
  return unpack_half(rounded_pair<lltm_half>(x, x));
}

// The sums of 16 units and 8 rows: main[0], main[1] of unit 2g, rows 2q and 2q + 1; main[2],
// main[3] of unit 2g + 1; in lane 4g + q. The small ones of a split format are added in the end.
// So are those of every other product, where kInTwo says that a lane has too few sums to keep the
// tensor cores busy: each product waits for the one before it that adds to the same.
template <typename Value, bool kInTwo>
struct Sums {
  Value main[4];
  Value cross[4];
  __device__ __forceinline__ void fill(Value value) {
#pragma unroll
    for (int i = 0; i < 4; ++i) main[i] = cross[i] = value;
  }
  __device__ __forceinline__ void clear() { fill(0); }
  __device__ __forceinline__ Value* other() { return kInTwo ? cross : main; }
  __device__ __forceinline__ Value total(int i) const {
    return kInTwo ? main[i] + cross[i] : main[i];
  }
};

// A lane's runs of unit 2g and of unit 2g + 1, in the order in which the instructions take them.
struct UnitPair {
  uint4 first, second;
};

// 16-bit values. A run is 8 of them, two steps of K = 16.
template <typename Format>
struct SixteenBits {
  typedef UnitPair Units;
  typedef uint32_t Sent;
  static const int kRun = 8;
  static const int kWordBytes = 4;
  static const bool kGatesTogether = false;
  static const uint32_t kLapBit = 0;
  static const bool kLongRun = false;

  __device__ static __forceinline__ uint4 run(const float* v) {
    return make_uint4(Format::pair(v[0], v[1]), Format::pair(v[2], v[3]), Format::pair(v[4], v[5]),
                      Format::pair(v[6], v[7]));
  }
  __device__ static __forceinline__ Sent sent(float x, float y) { return Format::pair(x, y); }
  __device__ static __forceinline__ Units units(uint4 even, uint4 odd) {
    return {make_uint4(even.x, odd.x, even.y, odd.y), make_uint4(even.z, odd.z, even.w, odd.w)};
  }
  template <typename Sums>
  __device__ static __forceinline__ void multiply(Sums& sums, const Units& a, uint4 b) {
    Format::mma(sums.main, a.first, b.x, b.y);
    Format::mma(sums.other(), a.second, b.z, b.w);
  }
  template <typename Sums>
  __device__ static __forceinline__ float total(const Sums& sums, int i) {
    return sums.total(i);
  }
};

struct Bfloat16Format : SixteenBits<Bfloat16Format> {
  typedef FastMath Math;
  static const bool kScaled = false;
  __device__ static __forceinline__ uint32_t pair(float low, float high) {
    return rounded_pair<lltm_bfloat16>(low, high);
  }
  __device__ static __forceinline__ void mma(float* c, uint4 a, uint32_t b0, uint32_t b1) {
    LLTM_MMA("m16n8k16", "bf16", c, a, b0, b1);
  }
};

struct HalfFormat : SixteenBits<HalfFormat> {
  typedef FastMath Math;
  static const bool kScaled = false;
  __device__ static __forceinline__ uint32_t pair(float low, float high) {
    return rounded_pair<lltm_half>(low, high);
  }
  __device__ static __forceinline__ void mma(float* c, uint4 a, uint32_t b0, uint32_t b1) {
    LLTM_MMA("m16n8k16", "f16", c, a, b0, b1);
  }
};

// float as TF32 has it, for values that fit the exponents of a half: its mantissa is as long.
struct ShortFloatFormat : HalfFormat {
  static const bool kScaled = true;
};

// float by two halves, high + low / 2048, together 22 bits: three products of halves. For values
// that fit their exponents. A run is four values: both high pairs and then both low ones, as an
// instruction takes them from neighbouring registers, and in A high and low pairs in turn. The
// tensor core truncates where it adds to its accumulator: every product of high parts starts at
// zero and is added to the sum in float. What truncation takes away on average is given back in the
// end: in each step of a sequence it would be of the same sign.
struct SplitFormat {
  typedef CloseMath Math;
  typedef UnitPair Units;
  typedef uint2 Sent;
  static const bool kScaled = true;
  static const int kRun = 4;
  static const int kWordBytes = 4;
  static const uint32_t kLapBit = 0;
  static const bool kLongRun = true;
  static constexpr float kTruncated = 0.61f / (1 << 24);  // measured on an H200

  __device__ static __forceinline__ Sent sent(float low, float high) {
    const uint32_t main = rounded_pair<lltm_half>(low, high);
    return make_uint2(main, rounded_pair<lltm_half>((low - unpack_half(main)) * 2048.0f,
                                                    (high - unpack_half(main >> 16)) * 2048.0f));
  }
  __device__ static __forceinline__ uint4 run(const float* v) {
    const uint2 first = sent(v[0], v[1]);
    const uint2 second = sent(v[2], v[3]);
    return make_uint4(first.x, first.y, second.x, second.y);
  }
  // The high ones, the low ones.
  __device__ static __forceinline__ Units units(uint4 even, uint4 odd) {
    return {make_uint4(even.x, odd.x, even.z, odd.z), make_uint4(even.y, odd.y, even.w, odd.w)};
  }
  template <typename Sums>
  __device__ static __forceinline__ void multiply(Sums& sums, const Units& a, uint4 b) {
    float fresh[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    HalfFormat::mma(sums.cross, a.second, b.x, b.y);
    HalfFormat::mma(fresh, a.first, b.x, b.y);
    HalfFormat::mma(sums.cross, a.first, b.z, b.w);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.main[i] += fresh[i];
  }
  // A weight as two halves keep it. They miss the lowest bit of every fourth float, which has two
  // neighbours as near as each other: the ones above and below take turns, so that what a product
  // gets from one weight it loses by another, and what in one step it loses in a later one.
  __device__ static __forceinline__ float kept(float x, bool& above) {
    const float high = rounded_half(x);
    const float low = (x - high) * 2048.0f;
    // Far smaller ones have other errors, and larger ones stand beside an infinity or a NaN.
    if (low == rounded_half(low) || !(fabsf(x) > 1.0f / 4096 && fabsf(x) < 2.0f)) return x;
    const bool grows = above == (x > 0.0f);
    above = !above;
    return __uint_as_float(__float_as_uint(x) + (grows ? 1u : ~0u));
  }
  template <typename Sums>
  __device__ static __forceinline__ float total(const Sums& sums, int i) {
    return sums.main[i] + fmaf(sums.main[i], kTruncated, sums.cross[i] * (1.0f / 2048));
  }
};

// Whether weights between two neighbours of the format take turns. `keep` makes a run of them what
// the format keeps; where the next such weight goes is a bit in `above`, one of each gate and unit.
template <typename Format>
struct TakesTurns {
  static const bool value = false;
  template <typename Value>
  __device__ static __forceinline__ void keep(Value*, uint32_t, uint32_t&) {}
};
template <>
struct TakesTurns<SplitFormat> {
  static const bool value = true;
  __device__ static __forceinline__ void keep(float* run, uint32_t bit, uint32_t& above) {
#pragma unroll
    for (int i = 0; i < SplitFormat::kRun; ++i) {
      bool is_above = (above & bit) != 0;
      run[i] = SplitFormat::kept(run[i], is_above);
      above = is_above ? above | bit : above & ~bit;
    }
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_TENSOR_CORE_CUH_
