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
#include "sequence_rows.cuh"

namespace lltm {
namespace {

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

// Loads, stores and prefetches without a branch, which would keep what comes after it from being
// done while the thread waits for something else.
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
__device__ __forceinline__ void load_if(bool wanted, const float* from, float& value) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.f32 %0, [%1]; }"
               : "+f"(value)
               : "l"(from), "r"(static_cast<uint32_t>(wanted)));
}
template <typename S>
__device__ __forceinline__ void load_if(bool wanted, const S* from, S& value) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u16 %0, [%1]; }"
               : "+h"(value.bits)
               : "l"(from), "r"(static_cast<uint32_t>(wanted)));
}
__device__ __forceinline__ void prefetch_if(bool wanted, const void* p) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p prefetch.global.L2 [%0]; }" ::"l"(p),
               "r"(static_cast<uint32_t>(wanted)));
}
// A sector of the L2 cache holds eight units of a row or more, so one unit in four asks for it: of
// up to four arrays, which one this unit asks for.
__device__ __forceinline__ int array_to_prefetch(int unit) { return unit & 3; }

// The steps of a unit of a row, in the order in which they are taken. A Place has pointers to the
// values of one of them, and says where they are so many states further on.
template <bool kPacked, typename Place>
class BlockSteps {
 public:
  // `origin`: of the unit, in row 0 of the arrays.
  __device__ __forceinline__ BlockSteps(const SequenceShape& s, bool from_the_end, int64_t row,
                                        int unit, const Place& origin)
      : origin(origin),
        count(static_cast<int>(s.steps)),
        states(static_cast<int>(from_the_end ? -s.batch_size : s.batch_size) *
               static_cast<int>(s.state_size)),
        first_state(((from_the_end ? (s.steps - 1) * s.batch_size : 0) + row) * s.state_size),
        inside(row < s.batch_size && unit < s.state_size) {}

  __device__ __forceinline__ bool has(int t) const { return inside && t < count; }
  __device__ __forceinline__ Place first() const { return origin.moved(first_state); }
  // From where go_on leads to step 0; nothing lies there.
  __device__ __forceinline__ Place before_first() const {
    return origin.moved(first_state - states);
  }
  // From step t - 1 to step t, if it has that.
  __device__ __forceinline__ void go_on(Place& place, int) const { place = place.moved(states); }
  // Of step t + kAhead, if it has that; `place` is of step t.
  __device__ __forceinline__ Place ahead(const Place& place, int) const {
    return place.moved(kAhead * states);
  }

 private:
  const Place origin;
  const int count, states;
  const int64_t first_state;
  const bool inside;
};

// With packed data a row of the states may lack some.
template <typename Place>
class BlockSteps<true, Place> {
 public:
  __device__ __forceinline__ BlockSteps(const SequenceShape& s, bool from_the_end, int64_t row,
                                        int unit, const Place& origin)
      : origin(origin),
        count(static_cast<int>(s.steps)),
        rows(s, from_the_end),
        row(row),
        state_size(s.state_size),
        has_unit(unit < s.state_size) {}

  __device__ __forceinline__ bool has(int t) const {
    return has_unit && t < count && rows.has(t, row);
  }
  __device__ __forceinline__ Place first() const { return has(0) ? of(0) : origin; }
  __device__ __forceinline__ Place before_first() const { return origin; }
  __device__ __forceinline__ void go_on(Place& place, int t) const {
    if (has(t)) place = of(t);
  }
  __device__ __forceinline__ Place ahead(const Place& place, int t) const {
    return has(t + kAhead) ? of(t + kAhead) : place;
  }

 private:
  __device__ __forceinline__ Place of(int t) const {
    return origin.moved((rows[t] + row) * state_size);
  }

  const Place origin;
  const int count;
  const StepRows<true> rows;
  const int64_t row, state_size;
  const bool has_unit;
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_CUH_
