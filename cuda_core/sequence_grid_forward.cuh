// The forward pass of a sequence spread over the GPU.
#ifndef LLTM_SEQUENCE_GRID_FORWARD_CUH_
#define LLTM_SEQUENCE_GRID_FORWARD_CUH_

#include "sequence_grid_shapes.cuh"
#include "sequence_grid_weights.cuh"

namespace lltm {
namespace {

template <typename Shape>
class GridForward : GridForwardWeights<Shape> {
  typedef GridForwardWeights<Shape> Weights;
  typedef GridBlock<Shape> Block;
  typedef typename Shape::S S;
  typedef typename Shape::Numbers Numbers;
  typedef typename Block::Two Two;
  typedef typename Block::Value Value;
  using Block::group;
  using Block::H;
  using Block::inside;
  using Block::item;
  using Block::kCluster;
  using Block::kUnits;
  using Block::launch;
  using Block::memory;
  using Block::place;
  using Block::rank;
  using Block::state_of;
  using Block::steps;
  using Weights::a;
  using Weights::kSent;
  using Weights::kTakesTurns;
  using Weights::unscale;

 public:
  __device__ __forceinline__ GridForward(const SequenceForward<S>& a, const GridLaunch& launch,
                                         typename Shape::Memory& memory)
      : Weights(a, launch, memory) {}

  __device__ __forceinline__ void run() {
    if (Numbers::kScaled) this->choose_scale();
    if (!kTakesTurns) this->load_weights(0);
    this->load_states(a.c0, a.cell);
    load_bias();
    Position ahead = this->start();
    for (int i = 0; i < kCopiesAhead; ++i) copy_gates(i, ahead);
    if (threadIdx.x < 2) memory.failed[threadIdx.x] = 0;
    memory.partner.begin();
    __syncthreads();

    typename Block::Reader reader;
    Position now = this->start();
    next = this->look_ahead(now, sent_place());
    bool is_alone = false;
    unsigned met = 0;
    for (int count = 0;; ++count) {
      if (count > 0) {
        const Position done = now;
        this->advance(now);
        this->ask_later(reader, now, met);
        // What nobody waits for, while the words come.
        if (item.computes) {
          keep(done);
          if (now.step < steps) next = this->look_ahead(now, sent_place());
        }
        if (item.fetches) copy_gates(count - 1 + kCopiesAhead, ahead);
        if (now.step >= steps) break;
      }
      if (kTakesTurns && now.turn == 0) {
        const int step = launch.steps_before + now.step;
        if (now.step == 0 || step % kTurnSteps == 0) {
          this->load_weights(step / kTurnSteps % 2 == 0 ? 0 : ~0u);
        }
      }
      const int parity = count & 1;
      if (this->multiply(reader, parity, now, is_alone)) memory.failed[parity] = 1;
      if (threadIdx.x == 0) memory.partner.expect(count);
      wait_for_copies<kCopiesAhead - 1>();
      __syncthreads();
      const bool failed = memory.failed[parity] != 0;
      met = static_cast<unsigned>(clock());
      if (kCluster > 1 && item.fetches) give(count);
      if (item.computes) is_alone = !compute(now, count);
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
    memory.partner.end();
  }

 private:
  __device__ __forceinline__ void load_bias() {
    if (item.row != 0 || !item.computes) return;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      Two bias = two_of(Value(0), Value(0));
      if (a.bias && item.has_unit) {
        const S* const from = a.bias + gate * H + item.unit;
        bias = two_of(load(from[0]), load(from[1]));
      }
      memory.bias[gate][item.pair] = bias;
    }
  }

  // An item's gates of a position to shared memory, and on to the next position.
  __device__ __forceinline__ void copy_gates(int count, Position& p) {
    if (p.step < steps) {
      if (item.fetches && inside(item, p)) {
        const S* const from = a.gates + this->gates_place(item, p);
#pragma unroll
        for (int gate = 0; gate < 3; ++gate) {
          copy_async<sizeof(Pair<S>)>(&memory.gates[count % (kCopiesAhead + 1)][gate][item.number],
                                      from + gate * H);
        }
      }
      this->advance(p);
    }
    end_copies();
  }

  // The other block's sums, to it.
  __device__ __forceinline__ void give(int count) {
    const uint32_t place = Block::PartialSums::place_of(item, (1 - rank) * (kUnits / 2));
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      memory.partner.give(1 - rank, count, gate, item.number,
                          memory.sums.sum(count & 1, place, gate));
    }
  }

  // Returns false when the other block of the cluster did not come: then all is NaN.
  __device__ __forceinline__ bool compute(Position p, int count) {
    // The sums first, and without a branch: nothing else waits as long.
    Two x[3];
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) x[gate] = memory.sums.sum(count & 1, this->sums_at, gate);
    const bool has_come = memory.partner.has_come(count, launch.patience);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      memory.partner.add(count, gate, item.number, x[gate]);
      if (!has_come) x[gate] = this->report_failure();
    }
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      const Two given = load_pair<S>(&memory.gates[count % (kCopiesAhead + 1)][gate][item.number]);
      const Two bias = memory.bias[gate][item.pair];
      const bool adds = next.adds();
      x[gate] = two_of(given.x + bias.x + (adds ? x[gate].x * unscale : Value(0)),
                       given.y + bias.y + (adds ? x[gate].y * unscale : Value(0)));
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
    return has_come;
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

  CellState<Value> first, second;  // of the item's units
  typename Block::Ahead next;
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kSideBySide)
    grid_forward_kernel(const SequenceForward<typename Shape::S> a, const GridLaunch launch) {
#ifdef LLTM_TENSOR_CORES
  extern __shared__ __align__(16) char memory[];
  GridForward<Shape>(a, launch, *reinterpret_cast<typename Shape::Memory*>(memory)).run();
#endif
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_FORWARD_CUH_
