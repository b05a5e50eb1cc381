// What a block of sequence_grid.cuh is made of.
#ifndef LLTM_SEQUENCE_GRID_PARTS_CUH_
#define LLTM_SEQUENCE_GRID_PARTS_CUH_

#include <cuda_runtime.h>

#include "lltm_sequence.h"
#include "sequence_block.cuh"
#include "sequence_exchange.cuh"
#include "sequence_gradient.cuh"
#include "sequence_grid_items.cuh"
#include "tensor_core_double.cuh"
#include "tensor_core_tf32.cuh"

namespace lltm {
namespace {

// Steps that a step's arrays are copied to shared memory ahead.
const int kCopiesAhead = 3;
// Steps after which a weight that lies between two neighbours of its format changes to the other
// one: if it stayed, its error would add up in a long sequence, as those of rounding do not.
const int kTurnSteps = 128;
// Groups of rows that a block may have.
const int kMostTurns = 8;

// The launch, beside the arguments of the sequence. A block has one of `slices` slices of the units
// and `turns` groups of rows, which take turns in every step.
struct GridLaunch {
  int slices;
  int turns;
  int blocks;
  unsigned clocks_to_send;
  long long patience;
  int steps_before;  // modulo two turns of kTurnSteps
  char* ring;
  uint32_t slot_bytes;
  int slots;  // a power of two
  int fence_every;
  int32_t* failure;
};

// Values in shared memory, two or four of them in a few loads.
template <typename Value>
struct Vector;
template <>
struct Vector<float> {
  typedef float2 Two;
  typedef float4 Four;
};
template <>
struct Vector<double> {
  typedef double2 Two;
  struct Four {
    double2 first, second;
  };
};
__device__ __forceinline__ float2 two_of(float x, float y) { return make_float2(x, y); }
__device__ __forceinline__ double2 two_of(double x, double y) { return make_double2(x, y); }
__device__ __forceinline__ float4 four_of(float x, float y, float z, float w) {
  return make_float4(x, y, z, w);
}
__device__ __forceinline__ Vector<double>::Four four_of(double x, double y, double z, double w) {
  return {make_double2(x, y), make_double2(z, w)};
}

// The weights of a warp for one chunk of K and 16 units, 16 bytes of every lane side by side: each
// load of a warp then takes whole banks.
template <typename Units>
struct LaneUnits {
  static const int kQuads = sizeof(Units) / sizeof(uint4);
  uint4 quads[kQuads][32];

  __device__ __forceinline__ void put(int lane, const Units& units) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) quads[i][lane] = reinterpret_cast<const uint4*>(&units)[i];
  }
  __device__ __forceinline__ Units get(int lane) const {
    Units units;
#pragma unroll
    for (int i = 0; i < kQuads; ++i) reinterpret_cast<uint4*>(&units)[i] = quads[i][lane];
    return units;
  }
};

// What of a run the thread of a pair of units sends: that pair.
template <typename Format, typename Words>
__device__ __forceinline__ Words in_run(Format, Words words, bool) {
  return words;
}
// Or, of two pairs, the first pair both high words, and the other one, two lanes on, both low
// ones.
__device__ __forceinline__ uint2 in_run(SplitFormat, uint2 words, bool is_first) {
  const uint32_t other = __shfl_xor_sync(~0u, is_first ? words.y : words.x, 2);
  return is_first ? make_uint2(words.x, other) : make_uint2(other, words.y);
}

// The coefficients of a pair of units for each of kCount threads, in shared memory.
template <typename Value, int kCount>
struct CoefficientPairs {
  typename Vector<Value>::Two values[5][kCount];

  __device__ __forceinline__ void put(int i, const Coefficients<Value>& first,
                                      const Coefficients<Value>& second) {
    values[0][i] = two_of(first.grad_output, second.grad_output);
    values[1][i] = two_of(first.d_cell_of_h, second.d_cell_of_h);
    values[2][i] = two_of(first.d_output_of_h, second.d_output_of_h);
    values[3][i] = two_of(first.d_input_of_cell, second.d_input_of_cell);
    values[4][i] = two_of(first.d_candidate_of_cell, second.d_candidate_of_cell);
  }
  __device__ __forceinline__ void get(int i, Coefficients<Value>& first,
                                      Coefficients<Value>& second) const {
    first = {values[0][i].x, values[1][i].x, values[2][i].x, values[3][i].x, values[4][i].x};
    second = {values[0][i].y, values[1][i].y, values[2][i].y, values[3][i].y, values[4][i].y};
  }
};

// The partial sums of kGates products: of each a pair of units and a pair of rows in a block. The
// stride keeps both the writing and the reading of floats free of bank conflicts.
template <typename Value, int kUnits, int kRows, int kGates, int kWarps>
struct PartialSums {
  typedef typename Vector<Value>::Two Two;
  typedef typename Vector<Value>::Four Four;
  static const int kStride = kUnits / 2 + 2;
  static const int kOfWarp = kGates * kRows / 2 * kStride;

  Four blocks[2][kWarps * kOfWarp];

  // Where a thread puts its blocks, in bytes. Lane 4g + q has unit pair g and row pair q of a tile
  // of 16 units and eight rows.
  __device__ __forceinline__ static uint32_t place_of_thread() {
    const int lane = threadIdx.x & 31;
    return ((threadIdx.x >> 5) * kOfWarp + (lane & 3) * kStride + (lane >> 2)) * sizeof(Four);
  }
  __device__ __forceinline__ void put(int parity, uint32_t place, int gate, int unit_tile,
                                      int row_tile, Four block) {
    const int beyond = (gate * (kRows / 2) + row_tile * 4) * kStride + unit_tile * 8;
    at<Four>(parity, place, beyond) = block;
  }
  // Where an item's parts are whose block has the units from pair first_pair on.
  template <typename Item>
  __device__ __forceinline__ static uint32_t place_of(const Item& item, int first_pair = 0) {
    return (item.row_pair * kStride + first_pair + item.pair) * sizeof(Four) +
           (item.row & 1) * sizeof(Two);
  }
  __device__ __forceinline__ Two sum(int parity, uint32_t place, int gate) {
    Two parts[kWarps];
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      parts[warp] = at<Two>(parity, place, gate * (kRows / 2) * kStride + warp * kOfWarp);
    }
#pragma unroll
    for (int warp = 2; warp < kWarps; ++warp) {
      parts[warp & 1].x += parts[warp].x;
      parts[warp & 1].y += parts[warp].y;
    }
    return {parts[0].x + parts[1].x, parts[0].y + parts[1].y};
  }

 private:
  template <typename Any>
  __device__ __forceinline__ Any& at(int parity, uint32_t place, int beyond) {
    char* const bytes = reinterpret_cast<char*>(blocks[parity] + beyond);
    return *reinterpret_cast<Any*>(bytes + place);
  }
};

// A number that is kept in a register: the compiler would compute it anew where others wait, but
// does not know what a shuffle brings. Beside doubles there is no room for it.
template <typename Value>
__device__ __forceinline__ uint32_t kept(uint32_t number) {
  return sizeof(Value) == 4 ? __shfl_sync(~0u, number, threadIdx.x & 31) : number;
}

// Where a pair of values lies in the exchange of one group: in the runs of its chunk of K. A piece
// is what a warp reads at once, 512 bytes: of eight rows four runs each.
template <int kRun, int kRows>
__device__ __forceinline__ int place_of(int k, int row) {
  const int chunk = k / (4 * kRun);
  const int run = k % (4 * kRun) / kRun;
  return (chunk * (kRows / 8) + row / 8) * 512 + (row % 8 * 4 + run) * 16 + k % kRun * (16 / kRun);
}

// Pairs of neighbouring values in memory, aligned to the pair.
template <typename S>
struct Pair {
  S first, second;
};
template <typename S>
__device__ __forceinline__ typename Vector<ComputeType<S>>::Two load_pair(const void* p) {
  static_assert(sizeof(S) == 2, "the others have specializations");
  const uint32_t word = *static_cast<const uint32_t*>(p);
  S first, second;
  first.bits = static_cast<uint16_t>(word);
  second.bits = static_cast<uint16_t>(word >> 16);
  return make_float2(load(first), load(second));
}
template <>
__device__ __forceinline__ float2 load_pair<float>(const void* p) {
  return *static_cast<const float2*>(p);
}
template <>
__device__ __forceinline__ double2 load_pair<double>(const void* p) {
  return *static_cast<const double2*>(p);
}
// Stores of what nobody reads soon: what is exchanged shall stay in the L2 cache rather than they.
template <typename S>
__device__ __forceinline__ void store_pair(float first, float second, S* p) {
  const uint32_t word = rounded_pair<S>(first, second);
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(word) : "memory");
}
__device__ __forceinline__ void store_pair(float first, float second, float* p) {
  asm volatile("st.global.cs.v2.f32 [%0], {%1,%2};" ::"l"(p), "f"(first), "f"(second) : "memory");
}
__device__ __forceinline__ void store_pair(double first, double second, double* p) {
  asm volatile("st.global.cs.v2.f64 [%0], {%1,%2};" ::"l"(p), "d"(first), "d"(second) : "memory");
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_PARTS_CUH_
