// A sequence spread over the GPU, in one cooperative launch: a block keeps the recurrent weights of
// kUnits units in its registers and shared memory and computes them for a group of rows at a time;
// the blocks tell each other h (or d_gates) through the L2 cache, see sequence_exchange.cuh. The
// state is padded to what a kernel is made for, the batch to whole groups, with zeros that are
// exchanged like values.
//
// The warps of a block share out K, the columns of the product. A warp multiplies its share
// for all units of the block; the partial sums go through shared memory to the first threads, which
// have a pair of neighbouring units of one row each: an item.
#ifndef LLTM_SEQUENCE_GRID_CUH_
#define LLTM_SEQUENCE_GRID_CUH_

#include <cuda_runtime.h>

#include "sequence_grid_places.cuh"

namespace lltm {
namespace {

// A block of the launch. Shape says how much it has of what, and its Memory holds weights, sums
// and, for every turn, a pair of values of each item's state.
template <typename Shape>
class GridBlock : protected GridPlaces<Shape> {
 protected:
  typedef GridPlaces<Shape> Places;
  typedef typename Shape::S S;
  typedef ComputeType<S> Value;
  typedef typename Vector<Value>::Two Two;
  typedef typename Shape::Numbers Numbers;
  typedef typename Numbers::Units Units;
  typedef typename Shape::Memory Memory;
  using Places::advance;
  using Places::inside;
  using Places::item;
  using Places::kPieces;
  using Places::kRowTiles;
  using Places::kWarps;
  using Places::lane;
  using Places::launch;
  using Places::pieces;
  using Places::place;
  using Places::rank;
  using Places::slice;
  using Places::steps;
  using Places::warp;
  static const int kUnits = Shape::kUnits;
  static const int kCluster = Shape::kCluster;
  static const int kChunks = Shape::kChunks;
  static const int kRun = Numbers::kRun;
  // A cluster's blocks multiply for the units of all of them.
  static const int kUnitTiles = Shape::kCluster * kUnits / 16;
  static const int kTiles = Shape::kGates * kUnitTiles;
  static const int kCount = Shape::Item::kCount;
  // Loads of weights straight on, see load_weights.
  static const int kRunsAtOnce = Numbers::kLongRun ? 1 : kTiles * (Shape::kByChunks ? 1 : kChunks);
  typedef lltm::Reader<kPieces, Shape::kDepth, Numbers> Reader;
  typedef typename Shape::PartialSums PartialSums;
  typedef lltm::Sums<Value, (kTiles * kRowTiles < 3)> Sums;

  __device__ __forceinline__ GridBlock(const SequenceShape& shape, bool from_the_end,
                                       const GridLaunch& launch, Memory& memory)
      : Places(shape, from_the_end, launch, memory.lengths),
        memory(memory),
        put_at(kept<Value>(PartialSums::place_of_thread())),
        sums_at(kept<Value>(PartialSums::place_of(item, rank * (kUnits / 2)))),
        fence_at(launch.fence_every) {}

  __device__ __forceinline__ Two& state_of(int turn) {
    return memory.states[turn * kCount + threadIdx.x];
  }
  // Of every turn: those given, or carried on; zeros where there are neither.
  __device__ __forceinline__ void load_states(const S* given, const Value* carried) {
    if (this->only_fetches()) return;
    for (int turn = 0; turn < this->turns(); ++turn) {
      Two state = two_of(Value(0), Value(0));
      if (inside(item, turn) && given) {
        state = load_pair<S>(given + place(item, turn));
      } else if (inside(item, turn) && carried) {
        state = load_pair<Value>(carried + place(item, turn));
      }
      if (item.computes) state_of(turn) = state;
    }
  }
  template <typename Any>
  __device__ __forceinline__ void store_states(Any* states) {
    if (!states || this->only_fetches()) return;
    for (int turn = 0; turn < this->turns(); ++turn) {
      if (!inside(item, turn)) continue;
      store_pair(state_of(turn).x, state_of(turn).y, states + place(item, turn));
    }
  }

  // read(gate, k, unit, values): the weights of one unit, a run of K from k on.
  // run(gate, unit, values) -> the operand's run
  // Where a run takes many instructions it is a loop: straight on they would be 100 KiB, which took
  // longer to fetch than to do.
  template <typename Read, typename Run>
  __device__ __forceinline__ void load_weights(int lane, const Read& read, const Run& run) {
    const auto at = [&](int i, int& gate, int& k, int& unit) {
      const int tile = i % kTiles;
      gate = tile / kUnitTiles;
      k = (((rank * kWarps + warp) * kChunks + i / kTiles) * 4 + (lane & 3)) * kRun;
      unit = (slice - rank) * kUnits + tile % kUnitTiles * 16 + 2 * (lane >> 2);
    };
    int gate, k, unit;
    at(0, gate, k, unit);
    Value values[2][kRun], ahead[2][kRun];
    read(gate, k, unit, ahead[0]);
    read(gate, k, unit + 1, ahead[1]);
#pragma unroll kRunsAtOnce
    for (int i = 0; i < kChunks * kTiles; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kRun; ++j) values[j / kRun][j % kRun] = ahead[j / kRun][j % kRun];
      const int now_gate = gate, now_unit = unit;
      if (i + 1 < kChunks * kTiles) {
        at(i + 1, gate, k, unit);
        read(gate, k, unit, ahead[0]);
        read(gate, k, unit + 1, ahead[1]);
        __syncwarp();  // for the compiler: all are under way before one is used
      }
      const Units pair = Numbers::units(run(now_gate, now_unit, values[0]),
                                        run(now_gate, now_unit + 1, values[1]));
      if (i < Shape::kInRegisters * kTiles) {
#pragma unroll
        for (int j = 0; j < Shape::kInRegisters * kTiles; ++j) {
          if (j == i) weights[j / kTiles][j % kTiles] = pair;
        }
      } else {
        memory.weights[warp][i / kTiles - Shape::kInRegisters][i % kTiles].put(lane, pair);
      }
    }
  }

  // Asks for what the step of a position needs, and does not wait. For a product in the same
  // iteration: the head of a loop waits for all loads.
  __device__ __forceinline__ void ask(Reader& reader, Position p) const {
    if (p.step > 0 && p.step < steps)
      reader.begin(pieces(p), this->lap(p.step - 1), launch.patience);
  }
  // The same when the others have sent it: so many clocks after this block met. Where groups take
  // turns they have sent it long ago.
  __device__ __forceinline__ void ask_later(Reader& reader, Position p, unsigned met) const {
    if (this->turns() == 1) {
      while (static_cast<unsigned>(clock()) - met < launch.clocks_to_send) {
      }
    }
    ask(reader, p);
  }

  // This warp's part of the products, to shared memory: zero in the first step. Returns whether a
  // block did not come. Then rows of which a word is absent are not numbers, for no word is; nor is
  // any row where words of an earlier lap are read instead, or the other block gets the sums.
  __device__ __forceinline__ bool multiply(Reader& reader, int parity, Position now,
                                           bool is_alone = false) {
    Sums sums[kTiles][kRowTiles];
    fill(sums, Value(0));
    bool gave_up = kCluster > 1 && __any_sync(~0u, is_alone);
    if (now.step > 0) {
      multiply_from(reader, sums, Chunk<0>());
      gave_up |= reader.gave_up();
      if (Numbers::kLapBit == 0 && now.step == fence_at && now.turn == 0) {
        fence();
        fence_at += launch.fence_every;
      }
    }
    if ((Numbers::kLapBit != 0 || kCluster > 1) && gave_up) {
      fill(sums, __uint_as_float(0x7fc00000u));
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int n = 0; n < kRowTiles; ++n) {
        const Sums& s = sums[tile][n];
        memory.sums.put(parity, put_at, tile / kUnitTiles, tile % kUnitTiles, n,
                        four_of(Numbers::total(s, 0), Numbers::total(s, 2), Numbers::total(s, 1),
                                Numbers::total(s, 3)));
      }
    }
    return gave_up;
  }

  // Some block did not come: what it would have told is not a number.
  __device__ __forceinline__ Two report_failure() const {
    if (launch.failure) {
      *launch.failure = 1;
      __threadfence_system();
    }
    const Value nan = __uint_as_float(0x7fc00000u);
    return two_of(nan, nan);
  }
  // Neither the state nor the values of the steps from here on may look like any: fill(position,
  // NaN).
  template <typename Fill>
  __device__ __forceinline__ void fail(Position p, const Fill& fill) {
    const Value nan = report_failure().x;
    if (this->only_fetches()) return;
    for (int turn = 0; turn < this->turns(); ++turn) {
      if (inside(item, turn)) state_of(turn) = two_of(nan, nan);
    }
    for (; p.step < steps; advance(p)) {
      if (inside(item, p)) fill(p, nan);
    }
  }

  Memory& memory;
  const uint32_t put_at, sums_at;  // of this thread, in memory.sums

 private:
  __device__ __forceinline__ static void fill(Sums (&sums)[kTiles][kRowTiles], Value value) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int n = 0; n < kRowTiles; ++n) sums[tile][n].fill(value);
    }
  }
  template <int c>
  struct Chunk {};
  __device__ __forceinline__ void multiply_from(Reader&, Sums (&)[kTiles][kRowTiles],
                                                Chunk<kChunks>) const {}
  template <int c>
  __device__ __forceinline__ void multiply_from(Reader& reader, Sums (&sums)[kTiles][kRowTiles],
                                                Chunk<c>) const {
    multiply_piece(reader, sums, Chunk<c>(), Chunk<0>());
    multiply_from(reader, sums, Chunk<c + 1>());
  }
  template <int c>
  __device__ __forceinline__ void multiply_piece(Reader&, Sums (&)[kTiles][kRowTiles], Chunk<c>,
                                                 Chunk<kRowTiles>) const {}
  template <int c, int n>
  __device__ __forceinline__ void multiply_piece(Reader& reader, Sums (&sums)[kTiles][kRowTiles],
                                                 Chunk<c>, Chunk<n>) const {
    const uint4 piece = reader.template take<c * kRowTiles + n>();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const Units w = c < Shape::kInRegisters
                          ? weights[c < Shape::kInRegisters ? c : 0][tile]
                          : memory.weights[warp][c - Shape::kInRegisters][tile].get(lane);
      Numbers::multiply(sums[tile][n], w, piece);
    }
    multiply_piece(reader, sums, Chunk<c>(), Chunk<n + 1>());
  }

  Units weights[Shape::kInRegisters > 0 ? Shape::kInRegisters : 1][kTiles];
  int fence_at;  // the step
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_CUH_
