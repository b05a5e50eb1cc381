// Where a block of a sequence spread over the GPU is in its arrays and in the exchange.
#ifndef LLTM_SEQUENCE_GRID_PLACES_CUH_
#define LLTM_SEQUENCE_GRID_PLACES_CUH_

#include <cuda_runtime.h>

#include "lltm_sequence.h"
#include "sequence_grid_parts.cuh"

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

  __device__ __forceinline__ GridPlaces(const SequenceShape& shape, bool from_the_end,
                                        const GridLaunch& launch)
      : launch(launch),
        batch_size(static_cast<int>(shape.batch_size)),
        H(static_cast<int>(shape.state_size)),
        steps(static_cast<int>(shape.steps)),
        slice(blockIdx.x % launch.slices),
        first_group(blockIdx.x / launch.slices * launch.turns),
        rank(slice % kCluster),
        warp(threadIdx.x >> 5),
        lane(threadIdx.x & 31),
        packed(shape.first_rows != nullptr),
        rows(shape, from_the_end),
        lines(shape, from_the_end),
        states_of_step(rows.advance * H),
        item(threadIdx.x, slice, H),
        fetched(threadIdx.x - Item::kFirstFetcher, slice, H) {}

  __device__ __forceinline__ int row(const Item& item, int turn) const {
    return (first_group + turn) * kRows + item.row;
  }
  __device__ __forceinline__ bool inside(const Item& item, int turn) const {
    return item.has_unit && row(item, turn) < batch_size;
  }
  // Whether there is something to compute; with packed data a row may lack a step.
  __device__ __forceinline__ bool inside(const Item& item, Position p) const {
    return inside(item, p.turn) && has(p.step, row(item, p.turn));
  }
  __device__ __forceinline__ bool has(int step, int row) const {
    return !packed || lines.has(step, row);
  }
  // Whether that is the first step of an item's row, or the last one of this thread's.
  __device__ __forceinline__ bool is_first(const Item& item, Position p) const {
    return p.step == 0 || !has(p.step - 1, row(item, p.turn));
  }
  __device__ __forceinline__ bool is_last(Position p) const {
    return p.step + 1 == steps || !has(p.step + 1, row(item, p.turn));
  }
  __device__ __forceinline__ Position start() const {
    return {0, 0, (packed ? lines[0] : rows[0]) * H};
  }
  __device__ __forceinline__ void advance(Position& p) const {
    if (++p.turn < launch.turns) return;
    p.turn = 0;
    ++p.step;
    if (!packed) {
      p.start += states_of_step;
    } else if (p.step < steps) {
      p.start = lines[p.step] * H;
    }
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
    return 3 * place(item, p) - 2 * item.unit;
  }
  // The exchange of this block's group in the slot of a step.
  __device__ __forceinline__ char* group(int step, int turn) const {
    return launch.ring + group_in_ring(step, turn);
  }
  __device__ __forceinline__ uint32_t group_in_ring(int step, int turn) const {
    const uint32_t slot = static_cast<uint32_t>(step & (launch.slots - 1)) * launch.slot_bytes;
    return slot + (first_group + turn) * (kCluster * kWarps * kPieces * 512);
  }
  // What this lane reads for a position: what the step before it sent.
  __device__ __forceinline__ const char* pieces(Position p) const {
    return group(p.step - 1, p.turn) + (rank * kWarps + warp) * (kPieces * 512) + lane * 16;
  }
  // Whether this step makes the words of a later one absent: those that an earlier one left.
  __device__ __forceinline__ bool removes(int step) const {
    return step >= launch.slots - removed_ahead() && step + removed_ahead() < steps;
  }
  // Steps ahead of that.
  __device__ __forceinline__ int removed_ahead() const { return launch.slots / 2; }

  // What this thread's item needs to know of a position when the block meets, made ready before. It
  // is kept while the block multiplies: in two registers.
  struct Ahead {
    uint32_t flags;
    uint32_t sent_to;  // in the ring

    __device__ __forceinline__ bool is_inside() const { return (flags & 1) != 0; }
    // What comes of the step before; nothing comes before a row's first step.
    __device__ __forceinline__ bool adds() const { return (flags & 2) != 0; }
  };
  // sent_place: the item's in the exchange of a group.
  __device__ __forceinline__ Ahead look_ahead(Position p, int sent_place) const {
    const bool is_inside = inside(item, p);
    const uint32_t flags = (is_inside ? 1 : 0) | (is_inside && !is_first(item, p) ? 2 : 0);
    return {flags, group_in_ring(p.step, p.turn) + sent_place};
  }

  const GridLaunch& launch;
  const int batch_size, H, steps, slice, first_group;
  const int rank;  // in the cluster
  const int warp, lane;
  const bool packed;
  const StepRows<false> rows;
  const StepRows<true> lines;  // with packed data
  const int64_t states_of_step;
  const Item item;     // of this thread
  const Item fetched;  // the one that it fetches for
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_PLACES_CUH_
