// A whole sequence in one block, for few rows and a state of at most 128: the recurrent weights lie
// in the registers of its threads, h (or the d_gates) in shared memory, and no block waits for
// another. The state is padded to kWidth units, a multiple of 32, with zeros. The kernels take
// their product from a class that has the weights: sequence_block_fma.cuh,
// sequence_block_tensor.cuh.
#ifndef LLTM_SEQUENCE_BLOCK_CUH_
#define LLTM_SEQUENCE_BLOCK_CUH_

#include <cuda_runtime.h>

#include "fast_math.cuh"
#include "lltm_math.h"
#include "lltm_sequence.h"
#include "lltm_types.h"

namespace lltm {
namespace {

const int kWidest = 128;
// Steps between a prefetch into the L2 cache and the use.
const int kAhead = 8;

// A value as it comes back from memory.
template <typename S>
__device__ __forceinline__ float rounded(float value) {
  S stored;
  store(value, &stored);
  return load(stored);
}

// Of a cell, or of its gradient: given, or carried on, or zero.
template <typename S>
__device__ __forceinline__ float first_value(const S* given, const float* carried, int64_t at) {
  if (given) return load(given[at]);
  return carried ? carried[at] : 0.0f;
}

// The gate math: a half type rounds more than the fast one errs.
template <typename S>
struct BlockMathOf {
  typedef FastMath Type;
};
template <>
struct BlockMathOf<float> {
  typedef CloseMath Type;
};
template <typename S>
using BlockMath = typename BlockMathOf<S>::Type;

// Of a gate's unit for a column; beyond the state zero.
template <typename S>
__device__ __forceinline__ float weight(const SequenceShape& shape, const S* weights, int gate,
                                        int unit, int column, int H) {
  if (unit >= H || column >= H) return 0.0f;
  return load(weights[(gate * shape.state_size + unit) * shape.weights_stride + column]);
}

__device__ __forceinline__ void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// Stores and prefetches without a branch, which would keep what comes after it from being done
// while a product is under way.
__device__ __forceinline__ void store_bits_if(bool wanted, uint32_t bits, void* to) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u32 [%0], %1; }" ::"l"(to),
               "r"(bits), "r"(static_cast<uint32_t>(wanted)));
}
__device__ __forceinline__ void store_bits_if(bool wanted, uint16_t bits, void* to) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u16 [%0], %1; }" ::"l"(to),
               "h"(bits), "r"(static_cast<uint32_t>(wanted)));
}
__device__ __forceinline__ void store_if(bool wanted, float value, float* to) {
  store_bits_if(wanted, __float_as_uint(value), to);
}
template <typename S>
__device__ __forceinline__ void store_if(bool wanted, float value, S* to) {
  S stored;
  store(value, &stored);
  store_bits_if(wanted, stored.bits, to);
}
__device__ __forceinline__ void prefetch_if(bool wanted, const void* p) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p prefetch.global.L2 [%0]; }" ::"l"(p),
               "r"(static_cast<uint32_t>(wanted)));
}

// Which rows of the arrays the steps have: step t of those taken, first to last.
template <bool kPacked>
struct StepRows {
  int64_t first;
  int64_t advance;
  __device__ __forceinline__ StepRows(const SequenceShape& s, bool from_the_end)
      : first(from_the_end ? (s.steps - 1) * s.batch_size : 0),
        advance(from_the_end ? -s.batch_size : s.batch_size) {}
  __device__ __forceinline__ int64_t operator[](int64_t t) const { return first + t * advance; }
  // Whether a row of the states has a step: with packed data the first ones have.
  __device__ __forceinline__ bool has(int64_t, int64_t) const { return true; }
};

template <>
struct StepRows<true> {
  const int64_t* start;
  const int64_t* lines;  // of step 0
  int advance;
  __device__ __forceinline__ StepRows(const SequenceShape& s, bool from_the_end)
      : start(s.first_rows),
        lines(from_the_end ? s.first_rows + s.steps - 1 : s.first_rows),
        advance(from_the_end ? -1 : 1) {}
  __device__ __forceinline__ int64_t operator[](int64_t t) const {
    return lines[t * advance] - *start;
  }
  __device__ __forceinline__ bool has(int64_t t, int64_t row) const {
    return row < lines[t * advance + 1] - lines[t * advance];
  }
};

// Where a unit of a row has its values of a step: in arrays of states, and the first of the three
// in gates.
struct UnitPlace {
  int64_t state, gates;
};

// With packed data a unit must have the step.
template <bool kPacked>
struct UnitPlaces {
  StepRows<kPacked> rows;
  int64_t row, H;
  int unit;
  int64_t states_of_step;
  __device__ __forceinline__ UnitPlaces(const SequenceShape& s, bool from_the_end, int64_t row,
                                        int unit)
      : rows(s, from_the_end),
        row(row),
        H(s.state_size),
        unit(unit),
        states_of_step(rows.advance * s.state_size) {}
  __device__ __forceinline__ UnitPlace of(int64_t line) const {
    return {line * H + unit, line * 3 * H + unit};
  }
  __device__ __forceinline__ UnitPlace first() const { return of(rows[0] + row); }
  // `ahead` steps after step t, whose place is known.
  __device__ __forceinline__ UnitPlace after(UnitPlace place, int t, int ahead) const {
    if (kPacked) return of(rows[t + ahead] + row);
    return {place.state + ahead * states_of_step, place.gates + ahead * 3 * states_of_step};
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_CUH_
