// A whole sequence in one block, for few rows and a state of at most 128: the recurrent weights lie
// in the registers of its threads, h (or the d_gates) in shared memory, and no block waits for
// another. The state is padded to kWidth units, a multiple of 32, with zeros.
#ifndef LLTM_SEQUENCE_BLOCK_CUH_
#define LLTM_SEQUENCE_BLOCK_CUH_

#include <cuda_runtime.h>

#include "lltm_math.h"
#include "lltm_sequence.h"
#include "lltm_types.h"

namespace lltm {
namespace {

const int kWidest = 128;
// Steps between a prefetch into the L2 cache and the use.
const int kAhead = 8;

__device__ __forceinline__ void prefetch(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// A value as it comes back from memory.
template <typename S>
__device__ __forceinline__ float rounded(float value) {
  S stored;
  store(value, &stored);
  return load(stored);
}

// Of two values that `lane` and its neighbour at `distance` both have parts of, each lane gets one
// whole: `upper` says which.
__device__ __forceinline__ float exchange_sum(bool upper, float first, float second, int distance) {
  const float mine = upper ? second : first;
  return mine + __shfl_xor_sync(0xffffffffu, upper ? first : second, distance);
}

// Which rows of the arrays the steps have: step t of those taken, first to last.
struct StepRows {
  int64_t batch_size;
  int64_t first;
  int64_t advance;
  // With packed data: what to subtract, step t, and from it to step t + 1.
  const int64_t* start;
  const int64_t* lines;
  int lines_advance;

  __device__ __forceinline__ StepRows(const SequenceShape& s, bool from_the_end)
      : batch_size(s.batch_size),
        first(from_the_end ? (s.steps - 1) * s.batch_size : 0),
        advance(from_the_end ? -s.batch_size : s.batch_size),
        start(s.first_rows),
        lines(s.first_rows && from_the_end ? s.first_rows + s.steps - 1 : s.first_rows),
        lines_advance(from_the_end ? -1 : 1) {}

  __device__ __forceinline__ int64_t operator[](int64_t t) const {
    return start ? lines[t * lines_advance] - *start : first + t * advance;
  }
  // How many: the states' rows from the first one on.
  __device__ __forceinline__ int64_t count(int64_t t) const {
    return start ? lines[t * lines_advance + 1] - lines[t * lines_advance] : batch_size;
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_CUH_
