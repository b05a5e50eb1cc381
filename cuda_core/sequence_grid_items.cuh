// What a thread of sequence_grid.cuh computes, and when.
#ifndef LLTM_SEQUENCE_GRID_ITEMS_CUH_
#define LLTM_SEQUENCE_GRID_ITEMS_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

// Counts through the steps and, in each, the turns.
struct Position {
  int step, turn;
  int64_t start;  // of the step's rows in an array of states
};

// The steps of a row of packed data, in the order in which they are taken.
struct Span {
  int begin, end;

  __device__ __forceinline__ bool has(int step) const { return step >= begin && step < end; }
  __device__ __forceinline__ bool is_first(int step) const { return step == begin; }
  __device__ __forceinline__ bool is_last(int step) const { return step + 1 == end; }
};

// Which units and rows an item has.
template <int kUnits, int kRows, int kThreads>
struct Item {
  static const int kCount = kUnits / 2 * kRows;
  static_assert(kCount <= kThreads, "a thread has at most one item");
  // The first thread of those that fetch what the items need: others, where there are as many.
  static const int kFirstFetcher = 2 * kCount <= kThreads ? kCount : 0;

  int number;
  int pair;                // of units of the block
  int row_pair;            // of rows of the group
  int row;                 // of the group
  int unit;                // of the state, even
  bool computes, fetches;  // whether the thread does
  bool has_unit;
  Span span;  // of its row in the first group

  // The item that a thread computes, the one that it fetches for, and whichever of the two there
  // is: no thread has two different ones.
  __device__ __forceinline__ static Item computed(int thread, int slice, int H) {
    return Item(thread, is_computer(thread), false, slice, H);
  }
  __device__ __forceinline__ static Item fetched(int thread, int slice, int H) {
    return Item(thread - kFirstFetcher, false, is_fetcher(thread), slice, H);
  }
  __device__ __forceinline__ static Item either(int thread, int slice, int H) {
    return Item(thread < kFirstFetcher ? thread : thread - kFirstFetcher, is_computer(thread),
                is_fetcher(thread), slice, H);
  }

 private:
  __device__ __forceinline__ static bool is_computer(int thread) { return thread < kCount; }
  __device__ __forceinline__ static bool is_fetcher(int thread) {
    return thread >= kFirstFetcher && thread < kFirstFetcher + kCount;
  }
  __device__ __forceinline__ Item(int number, bool computes, bool fetches, int slice, int H)
      : number(number),
        pair((number >> 1) % (kUnits / 2)),
        row_pair((number >> 1) / (kUnits / 2)),
        row(2 * row_pair + (number & 1)),
        unit(slice * kUnits + 2 * pair),
        computes(computes),
        fetches(fetches),
        has_unit((computes || fetches) && unit < H),
        span() {}
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_ITEMS_CUH_
