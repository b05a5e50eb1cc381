// Which rows of the arrays belong to which step of a sequence on a GPU.
#ifndef LLTM_SEQUENCE_ROWS_CUH_
#define LLTM_SEQUENCE_ROWS_CUH_

#include <cuda_runtime.h>

#include "lltm_sequence.h"

namespace lltm {
namespace {

// The first row of step t of those taken, first to last.
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

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_ROWS_CUH_
