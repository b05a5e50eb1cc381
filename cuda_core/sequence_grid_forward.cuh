// The forward pass of a sequence spread over the GPU.
#ifndef LLTM_SEQUENCE_GRID_FORWARD_CUH_
#define LLTM_SEQUENCE_GRID_FORWARD_CUH_

#include "sequence_grid.cuh"
#include "sequence_grid_shapes.cuh"

namespace lltm {
namespace {

template <typename Shape>
class GridForward : GridBlock<Shape> {
  typedef GridBlock<Shape> Block;
  typedef typename Shape::S S;
  typedef typename Shape::Numbers Numbers;
  typedef typename Block::Two Two;
  typedef typename Block::Value Value;
  using Block::fetched;
  using Block::group;
  using Block::H;
  using Block::inside;
  using Block::item;
  using Block::kUnits;
  using Block::launch;
  using Block::memory;
  using Block::place;
  using Block::slice;
  using Block::state_of;
  using Block::steps;

  static const bool kTakesTurns = TakesTurns<Numbers>::value;

 public:
  __device__ __forceinline__ GridForward(const SequenceForward<S>& a, const GridLaunch& launch,
                                         typename Shape::Memory& memory)
      : Block(a.shape, a.shape.reverse, launch, memory), a(a) {}

  __device__ __forceinline__ void run() {
    scale = 1.0f;
    unscale = 1.0f / kSent;
    if (Numbers::kScaled) choose_scale();
    if (!kTakesTurns) load_weights(0);
    this->load_states(a.c0, a.cell);
    load_bias();
    Position ahead = this->start();
    for (int i = 0; i < kCopiesAhead; ++i) copy_gates(i, ahead);
    if (threadIdx.x < 2) memory.failed[threadIdx.x] = 0;
    __syncthreads();

    typename Block::Reader reader;
    Position now = this->start();
    next = this->look_ahead(now, sent_place());
    unsigned met = 0;
    for (int count = 0;; ++count) {
      if (count > 0) {
        const Position done = now;
        this->advance(now);
        this->ask_later(reader, now, met);
        // What nobody waits for, while the words come.
        if (item.exists) {
          keep(done);
          if (now.step < steps) next = this->look_ahead(now, sent_place());
        }
        if (fetched.exists) copy_gates(count - 1 + kCopiesAhead, ahead);
        if (now.step >= steps) break;
      }
      if (kTakesTurns && now.turn == 0) {
        const int step = launch.steps_before + now.step;
        if (now.step == 0 || step % kTurnSteps == 0) {
          load_weights(step / kTurnSteps % 2 == 0 ? 0 : ~0u);
        }
      }
      const int parity = count & 1;
      if (this->multiply(reader, parity, now)) memory.failed[parity] = 1;
      wait_for_copies<kCopiesAhead - 1>();
      __syncthreads();
      const bool failed = memory.failed[parity] != 0;
      met = static_cast<unsigned>(clock());
      if (item.exists) compute(now, count);
      if (failed) {
        this->fail(now, [&](Position p, Value nan) {
          store_pair(nan, nan, a.output + place(item, p));
          // From which every gradient gets it.
          if (a.new_cell) store_pair(nan, nan, a.new_cell + place(item, p));
        });
        this->store_states(a.h_n);
        break;
      }
    }
    this->store_states(a.cell);
    this->store_states(a.c_n);
  }

 private:
  // Halves have few exponents: |h|, at most one, is sent 2^15 times larger, and the block's weights
  // are multiplied by a power of two that brings the largest to between one and two.
  __device__ __forceinline__ void choose_scale() {
    if (threadIdx.x == 0) memory.largest = 0;
    __syncthreads();
    unsigned largest = 0;
    for (int line = this->warp; line < 3 * kUnits; line += Block::kWarps) {
      const int unit = slice * kUnits + line % kUnits;
      if (unit >= H) continue;
      const S* const weights =
          a.weights + (line / kUnits * a.shape.state_size + unit) * a.shape.weights_stride;
#pragma unroll 8
      for (int i = this->lane; i < H; i += 32) {
        const float value = static_cast<float>(load(weights[i]));
        largest = max(largest, __float_as_uint(value) & 0x7fffffffu);
      }
    }
    atomicMax(&memory.largest, largest);
    __syncthreads();
    const unsigned exponent = memory.largest >> 23;
    if (exponent == 0 || exponent >= 254) return;
    scale = __uint_as_float((254 - exponent) << 23);
    unscale = __uint_as_float(exponent << 23) / kSent;
  }

  // first_above: of each unit's gate, where its first weight between two neighbours goes; the next
  // ones take turns.
  __device__ __forceinline__ void load_weights(uint32_t first_above) {
    above = first_above;
    int lane = this->lane;
    // Lest addresses wait in registers for the next time.
    if (kTakesTurns) asm volatile("" : "+r"(lane));
    Block::load_weights(
        lane,
        [&](int gate, int k, int unit, Value* values) { read_weights(gate, k, unit, values); },
        [&](int gate, int unit, Value* values) { return weights_run(gate, unit, values); });
  }

  __device__ __forceinline__ void read_weights(int gate, int column, int unit,
                                               Value* values) const {
    const S* const line =
        a.weights + (gate * a.shape.state_size + unit) * a.shape.weights_stride + column;
#pragma unroll
    for (int i = 0; i < Numbers::kRun; ++i) {
      values[i] = unit < H && column + i < H ? load(line[i]) : Value(0);
    }
  }

  __device__ __forceinline__ uint4 weights_run(int gate, int unit, Value* values) {
#pragma unroll
    for (int i = 0; i < Numbers::kRun; ++i) {
      if (Numbers::kScaled) values[i] *= scale;
    }
    TakesTurns<Numbers>::keep(values, 1u << (4 * gate + unit / 16 % 2 * 2 + unit % 2), above);
    return Numbers::run(values);
  }

  __device__ __forceinline__ void load_bias() {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      bias[gate] = two_of(Value(0), Value(0));
      if (!a.bias || !item.has_unit) continue;
      const S* const from = a.bias + gate * H + item.unit;
      bias[gate] = two_of(load(from[0]), load(from[1]));
    }
  }

  // An item's gates of a position to shared memory, and on to the next position.
  __device__ __forceinline__ void copy_gates(int count, Position& p) {
    if (p.step < steps) {
      if (inside(fetched, p)) {
        const S* const from = a.gates + this->gates_place(fetched, p);
#pragma unroll
        for (int gate = 0; gate < 3; ++gate) {
          copy_async<sizeof(Pair<S>)>(
              &memory.gates[count % (kCopiesAhead + 1)][gate][fetched.number], from + gate * H);
        }
      }
      this->advance(p);
    }
    end_copies();
  }

  __device__ __forceinline__ void compute(Position p, int count) {
    // The sums first, and without a branch: nothing else waits as long.
    Two x[3];
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) x[gate] = memory.sums.sum(count & 1, this->sums_at, gate);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      const Two given = load_pair<S>(&memory.gates[count % (kCopiesAhead + 1)][gate][threadIdx.x]);
      const bool adds = next.adds();
      x[gate] = two_of(given.x + bias[gate].x + (adds ? x[gate].x * unscale : Value(0)),
                       given.y + bias[gate].y + (adds ? x[gate].y * unscale : Value(0)));
    }
    Two& cell = state_of(p.turn);
    first = cell_forward_by<typename Numbers::Math>(x[0].x, x[1].x, x[2].x, cell.x);
    second = cell_forward_by<typename Numbers::Math>(x[0].y, x[1].y, x[2].y, cell.y);
    const bool is_inside = next.is_inside();
    if (is_inside) cell = two_of(first.new_cell, second.new_cell);
    first.new_h = is_inside ? first.new_h : Value(0);
    second.new_h = is_inside ? second.new_h : Value(0);
    const auto words = Numbers::sent(first.new_h * kSent, second.new_h * kSent);
    const auto part = in_run(Numbers(), words, item.pair % 2 == 0);
    store_words(launch.ring + next.sent_to, part);
  }

  __device__ __forceinline__ int sent_place() const {
    return place_of<Numbers::kRun, Shape::kRows>(item.unit, item.row);
  }

  __device__ __forceinline__ void keep(Position p) {
    if (this->removes(p.step)) {
      store_words(group(p.step + this->removed_ahead(), p.turn) + sent_place(),
                  absent_words<typename Numbers::Sent>());
    }
    if (!next.is_inside()) return;
    const int64_t at = place(item, p);
    store_pair(first.new_h, second.new_h, a.output + at);
    if (a.h_n && this->span(item, p.turn).is_last(p.step))
      store_pair(first.new_h, second.new_h, a.h_n + place(item, p.turn));
    if (!a.new_cell) return;
    store_pair(first.new_cell, second.new_cell, a.new_cell + at);
    S* const gates = a.gates + this->gates_place(item, p);
    store_pair(first.input_gate, second.input_gate, gates);
    store_pair(first.output_gate, second.output_gate, gates + H);
    store_pair(first.candidate_cell, second.candidate_cell, gates + 2 * H);
  }

  static constexpr Value kSent = Numbers::kScaled ? 32768.0f : 1.0f;

  const SequenceForward<S>& a;
  Value scale, unscale;
  uint32_t above;                  // where the next weight between two goes, see SplitFormat
  Two bias[3];                     // of the item's units
  CellState<Value> first, second;  // of the item's units
  typename Block::Ahead next;
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    grid_forward_kernel(const SequenceForward<typename Shape::S> a, const GridLaunch launch) {
#ifdef LLTM_TENSOR_CORES
  extern __shared__ __align__(16) char memory[];
  GridForward<Shape>(a, launch, *reinterpret_cast<typename Shape::Memory*>(memory)).run();
#endif
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_FORWARD_CUH_
