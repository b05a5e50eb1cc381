// Where a block of a sequence spread over the GPU is in its arrays and in the exchange.
#ifndef LLTM_SEQUENCE_GRID_PLACES_CUH_
#define LLTM_SEQUENCE_GRID_PLACES_CUH_

#include <cuda_runtime.h>

#include "lltm_sequence.h"
#include "sequence_grid_parts.cuh"
#include "sequence_rows.cuh"

namespace lltm {
namespace {

template <typename Shape>
class GridPlaces {
 protected:
  typedef typename Shape::Item Item;
  static const int kRows = Shape::kRows;
  static const int kRowTiles = kRows / 8;
  static const int kPieces = Shape::kChunks * kRowTiles;
  static const int kWarps = Shape::kWarps;
  static const int kCluster = Shape::kCluster;

  // lengths: of every row of this block, in shared memory.
  __device__ __forceinline__ GridPlaces(const SequenceShape& shape, bool from_the_end,
                                        const GridLaunch& launch, int* lengths)
      : launch(launch),
        batch_size(static_cast<int>(shape.batch_size)),
        H(static_cast<int>(shape.state_size)),
        steps(static_cast<int>(shape.steps)),
        slice(blockIdx.x % launch.slices),
        first_group(blockIdx.x / launch.slices * turns()),
        rank(slice % kCluster),
        warp(threadIdx.x >> 5),
        lane(threadIdx.x & 31),
        packed(shape.first_rows != nullptr),
        from_the_end(from_the_end),
        rows(shape, from_the_end),
        lines(shape, from_the_end),
        states_of_step(rows.advance * H),
        lengths(lengths),
        item(Shape::kOneItem ? Item::either(threadIdx.x, slice, H)
                             : Item::computed(threadIdx.x, slice, H)),
        fetched(Item::fetched(threadIdx.x, slice, H)) {
    for (int i = threadIdx.x; i < turns() * kRows; i += Shape::kThreads) {
      lengths[i] = length(first_group * kRows + i, shape.first_rows);
    }
    __syncthreads();
    item.span = span_of(item, 0);
    fetched.span = span_of(fetched, 0);
  }

  // Whether another thread computes the item.
  __device__ __forceinline__ bool only_fetches() const { return Shape::kOneItem && !item.computes; }
  // Groups of rows that take turns in a step.
  __device__ __forceinline__ int turns() const { return Shape::kOneGroup ? 1 : launch.turns; }
  __device__ __forceinline__ int row(const Item& item, int turn) const {
    return (first_group + turn) * kRows + item.row;
  }
  __device__ __forceinline__ bool inside(const Item& item, int turn) const {
    return item.has_unit && row(item, turn) < batch_size;
  }
  // The steps in which there is something to compute; with packed data a row may lack some.
  __device__ __forceinline__ Span span(const Item& item, int turn) const {
    return Shape::kOneGroup ? item.span : span_of(item, turn);
  }
  __device__ __forceinline__ bool inside(const Item& item, Position p) const {
    return span(item, p.turn).has(p.step);
  }
  __device__ __forceinline__ Position start() const {
    return {0, 0, (packed ? lines[0] : rows[0]) * H};
  }
  __device__ __forceinline__ void advance(Position& p) const {
    if (!Shape::kOneGroup) {
      if (++p.turn < launch.turns) return;
      p.turn = 0;
    }
    ++p.step;
    if (!packed) {
      p.start += states_of_step;
    } else if (p.step < steps) {
      p.start = lines[p.step] * H;
    }
  }
  __device__ __forceinline__ Position after(Position p, int counts) const {
    for (int i = 0; i < counts; ++i) advance(p);
    return p;
  }
  // Where an item's pair is in the states, or in one of the states of a turn.
  __device__ __forceinline__ int place(const Item& item, int turn) const {
    return row(item, turn) * H + item.unit;
  }
  __device__ __forceinline__ int64_t place(const Item& item, Position p) const {
    return p.start + place(item, p.turn);
  }
  // The same in gates, of the first of the three.
  __device__ __forceinline__ int64_t gates_place(const Item& item, Position p) const {
    return 3 * p.start + (3 * place(item, p.turn) - 2 * item.unit);
  }
  // The exchange of this block's group in the slot of a step.
  __device__ __forceinline__ char* group(int step, int turn) const {
    return launch.ring + group_in_ring(step, turn);
  }
  __device__ __forceinline__ uint32_t group_in_ring(int step, int turn) const {
    const uint32_t slot = static_cast<uint32_t>(step & (launch.slots - 1)) * launch.slot_bytes;
    return slot + (first_group + turn) * (kCluster * kWarps * kPieces * 512);
  }
  // The bit of a step's words that says of which lap of the ring they are, in formats that have it.
  __device__ __forceinline__ uint32_t lap(int step) const {
    return (step & launch.slots) != 0 ? Shape::Numbers::kLapBit : 0;
  }
  // What this lane reads for a position: what the step before it sent.
  __device__ __forceinline__ const char* pieces(Position p) const {
    return group(p.step - 1, p.turn) + (rank * kWarps + warp) * (kPieces * 512) + lane * 16;
  }
  // Whether this step makes the words of a later one absent: those that an earlier one left.
  __device__ __forceinline__ bool removes(int step) const {
    return Shape::Numbers::kLapBit == 0 && step >= launch.slots - removed_ahead() &&
           step + removed_ahead() < steps;
  }
  // Steps ahead of that.
  __device__ __forceinline__ int removed_ahead() const { return launch.slots / 2; }

  // What the item needs to know of a position when the block meets, made ready before. It
  // is kept while the block multiplies: in two registers, three in formats with laps.
  struct Ahead {
    uint32_t flags;
    uint32_t sent_to;  // in the ring
    uint32_t lap;

    __device__ __forceinline__ bool is_inside() const { return (flags & 1) != 0; }
    // What comes of the step before; nothing comes before a row's first step.
    __device__ __forceinline__ bool adds() const { return (flags & 2) != 0; }
  };
  // sent_place: the item's in the exchange of a group.
  __device__ __forceinline__ Ahead look_ahead(Position p, int sent_place) const {
    const Span of_row = span(item, p.turn);
    const uint32_t is_inside = of_row.has(p.step);
    const uint32_t flags = is_inside | (is_inside & !of_row.is_first(p.step)) << 1;
    return {flags, group_in_ring(p.step, p.turn) + sent_place, lap(p.step)};
  }

  const GridLaunch& launch;
  const int batch_size, H, steps, slice, first_group;
  const int rank;  // in the cluster
  const int warp, lane;
  const bool packed, from_the_end;
  const StepRows<false> rows;
  const StepRows<true> lines;  // with packed data
  const int64_t states_of_step;
  const int* const lengths;
  Item item;     // that this thread computes; with kOneItem the one below where there is none
  Item fetched;  // that it fetches for

 private:
  // The steps of a row.
  __device__ int length(int row, const int64_t* first_rows) const {
    if (row >= batch_size) return 0;
    if (!packed) return steps;
    int least = 0, most = steps;  // the later a step, the fewer rows have it
    while (least < most) {
      const int step = least + (most - least) / 2;
      if (row < first_rows[step + 1] - first_rows[step]) {
        least = step + 1;
      } else {
        most = step;
      }
    }
    return least;
  }
  __device__ __forceinline__ Span span_of(const Item& item, int turn) const {
    const int length = item.has_unit ? lengths[turn * kRows + item.row] : 0;
    return {from_the_end ? steps - length : 0, from_the_end ? steps : length};
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_PLACES_CUH_
