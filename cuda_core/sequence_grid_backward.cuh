// The backward pass of a sequence spread over the GPU. K are the three gates of all units.
#ifndef LLTM_SEQUENCE_GRID_BACKWARD_CUH_
#define LLTM_SEQUENCE_GRID_BACKWARD_CUH_

#include "sequence_gradient.cuh"
#include "sequence_grid.cuh"
#include "sequence_grid_shapes.cuh"

namespace lltm {
namespace {

template <typename Shape>
class GridBackward : GridBlock<Shape> {
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
  using Block::kCluster;
  using Block::kCount;
  using Block::launch;
  using Block::memory;
  using Block::place;
  using Block::rank;
  using Block::state_of;
  using Block::steps;

  static const bool kHandsOver = Shape::kHandsOver;
  // Registers for the words that come beside the coefficients, and for a cell. Doubles fill them.
  static const bool kHasRoom = sizeof(Value) == 4;

 public:
  __device__ __forceinline__ GridBackward(const SequenceBackward<S>& a, const GridLaunch& launch,
                                          typename Shape::Memory& memory)
      : Block(a.shape, !a.shape.reverse, launch, memory), a(a) {}

  __device__ __forceinline__ void run() {
    this->load_weights(
        this->lane, [&](int, int k, int unit, Value* values) { read_weights(k, unit, values); },
        [](int, int, const Value* values) { return Numbers::run(values); });
    this->load_states(a.d_c_n, a.d_cell);
    Position ahead = this->start();
    for (int i = 0; i < kCopiesAhead; ++i) copy_saved(i, ahead);
    prepare(0, this->start());
    if (threadIdx.x < 2) memory.failed[threadIdx.x] = 0;
    memory.partner.begin();
    __syncthreads();

    typename Block::Reader reader;
    Position now = this->start();
    look_ahead(now);
    const bool takes_turns = this->turns() > 1;
    bool is_alone = false;
    unsigned met = 0;
    for (int count = 0;; ++count) {
      if (count > 0) {
        const Position done = now;
        this->advance(now);
        if (takes_turns) this->ask(reader, now);
        // What nobody waits for, while the words come.
        if (item.computes) {
          keep(done);
          if (now.step < steps) look_ahead(now);
        }
        if (!takes_turns && kHasRoom) this->ask_later(reader, now, met);
        if (fetched.fetches) {
          Position then = this->after(now, kCopiesAhead - 1);
          copy_saved(count - 1 + kCopiesAhead, Shape::kKeepsAhead ? ahead : then);
          if (now.step < steps) prepare(count, now);
        }
        if (!takes_turns && !kHasRoom) this->ask_later(reader, now, met);
        if (now.step >= steps) break;
      }
      const int parity = count & 1;
      if (this->multiply(reader, parity, now, is_alone)) memory.failed[parity] = 1;
      if (threadIdx.x == 0) memory.partner.expect(count);
      __syncthreads();
      const bool failed = memory.failed[parity] != 0;
      met = static_cast<unsigned>(clock());
      if (kCluster > 1 && fetched.fetches) {
        const uint32_t place = Block::PartialSums::place_of(fetched, (1 - rank) * kPairs);
        memory.partner.give(1 - rank, count, 0, fetched.number, memory.sums.sum(parity, place, 0));
      }
      if (item.computes) is_alone = !compute(now, count);
      if (failed) {
        this->fail(now, [&](Position p, Value nan) {
          S* const d_gates = a.d_gates + this->gates_place(item, p);
          for (int gate = 0; gate < 3; ++gate) store_pair(nan, nan, d_gates + gate * H);
        });
        break;
      }
    }
    this->store_states(a.d_cell);
    this->store_states(a.d_c0);
    memory.partner.end();
  }

 private:
  static const int kPairs = Shape::kUnits / 2;

  // K are the units that d_gates come from, gate by gate, or the gates unit by unit.
  __device__ __forceinline__ static int gate_of(int k) {
    return Numbers::kGatesTogether ? k % 3 : k / Shape::kPadded;
  }
  __device__ __forceinline__ static int from_of(int k) {
    return Numbers::kGatesTogether ? k / 3 : k % Shape::kPadded;
  }
  __device__ __forceinline__ void read_weights(int k, int unit, Value* values) const {
#pragma unroll
    for (int i = 0; i < Numbers::kRun; ++i) {
      const int from = from_of(k + i);
      const int64_t line = gate_of(k + i) * a.shape.state_size + from;
      values[i] =
          unit < H && from < H ? load(a.weights[line * a.shape.weights_stride + unit]) : Value(0);
    }
  }

  // An item's saved values of a position to shared memory, and on to the next position.
  __device__ __forceinline__ void copy_saved(int count, Position& p) {
    if (p.step < steps) {
      if (inside(fetched, p)) {
        const int64_t at = place(fetched, p);
        const S* const activations = a.activations + this->gates_place(fetched, p);
        Pair<S>(*const to)[kCount] = memory.saved[count % (kCopiesAhead + 1)];
        const int i = fetched.number;
        copy_async<sizeof(Pair<S>)>(&to[Shape::kInput][i], activations);
        copy_async<sizeof(Pair<S>)>(&to[Shape::kOutput][i], activations + H);
        copy_async<sizeof(Pair<S>)>(&to[Shape::kCandidate][i], activations + 2 * H);
        copy_async<sizeof(Pair<S>)>(&to[Shape::kCell][i], a.new_cell + at);
        if (a.grad_output) {
          copy_async<sizeof(Pair<S>)>(&to[Shape::kGrad][i], a.grad_output + at);
        }
      }
      this->advance(p);
    }
    end_copies();
  }

  __device__ __forceinline__ Two saved(int count, int what) const {
    return load_pair<S>(&memory.saved[count % (kCopiesAhead + 1)][what][fetched.number]);
  }
  // What this thread's item needs of the next position, while other blocks still compute.
  __device__ __forceinline__ void look_ahead(Position p) {
    next = Block::look_ahead(p, sent_place());
    if (kHasRoom && item.computes) d_cell = state_of(p.turn);
  }
  // And its coefficients. Those of what is not inside are zero, and so is what is sent of it, or
  // NaN in a row of packed data whose cell is not finite: it begins with d_h of zero all the same.
  __device__ __forceinline__ void prepare(int count, Position p) {
    wait_for_copies<kCopiesAhead - 1>();
    first = second = Coefficients<Value>();
    if (inside(fetched, p)) compute_coefficients(count, p);
    if (kHandsOver && fetched.fetches)
      memory.prepared[count & 1].put(fetched.number, first, second);
  }
  __device__ __forceinline__ void compute_coefficients(int count, Position p) {
    const Two input_gate = saved(count, Shape::kInput);
    const Two output_gate = saved(count, Shape::kOutput);
    const Two candidate = saved(count, Shape::kCandidate);
    const Two cell = saved(count, Shape::kCell);
    Two grad = a.grad_output ? saved(count, Shape::kGrad) : Two{0, 0};
    if (a.d_h_n && this->span(fetched, p.turn).is_first(p.step)) {
      const Two last = load_pair<S>(a.d_h_n + place(fetched, p.turn));
      grad = two_of(last.x + grad.x, last.y + grad.y);
    }
    first = coefficients<typename Numbers::Math>(input_gate.x, output_gate.x, candidate.x, cell.x,
                                                 grad.x);
    second = coefficients<typename Numbers::Math>(input_gate.y, output_gate.y, candidate.y, cell.y,
                                                  grad.y);
  }

  // Returns false when the other block of the cluster did not come: then all is NaN.
  __device__ __forceinline__ bool compute(Position p, int count) {
    const int parity = count & 1;
    Two d_h = memory.sums.sum(parity, this->sums_at, 0);
    if (kHandsOver) memory.prepared[parity].get(item.number, first, second);
    const bool has_come = memory.partner.has_come(count, launch.patience);
    memory.partner.add(count, 0, item.number, d_h);
    if (!has_come) d_h = this->report_failure();
    // No branch from here on: the others wait for what is sent. Before the first step comes d_h_n,
    // which is in grad_output.
    if (!next.adds()) d_h = two_of(Value(0), Value(0));
    const bool flows = next.adds() || a.d_h_n || a.grad_output;
    if (!kHasRoom) d_cell = state_of(p.turn);
    differentiate(first, flows, d_h.x, d_cell.x, d_first);
    differentiate(second, flows, d_h.y, d_cell.y, d_second);
    send(launch.ring + next.sent_to, Shape::kKeepsAhead ? next.lap : this->lap(p.step), Numbers());
    if (next.is_inside()) state_of(p.turn) = d_cell;
    return has_come;
  }

  __device__ __forceinline__ void keep(Position p) {
    if (this->removes(p.step)) remove(group(p.step + this->removed_ahead(), p.turn) + sent_place());
    if (!next.is_inside()) return;
    S* const d_gates = a.d_gates + this->gates_place(item, p);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      store_pair(d_first[gate], d_second[gate], d_gates + gate * H);
    }
  }

  // Of the first gate, or of all.
  __device__ __forceinline__ int sent_place() const {
    return place_of<Numbers::kRun, Shape::kRows>((Numbers::kGatesTogether ? 3 : 1) * item.unit,
                                                 item.row);
  }
  // From the first gate's place to that of another: whole chunks.
  static const int kNextGate = Shape::kPadded / (4 * Numbers::kRun) * (Shape::kRows / 8) * 512;

  template <typename Any>
  __device__ __forceinline__ void send(char* to, uint32_t, Any) const {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate)
      store_words(to + gate * kNextGate, Any::sent(d_first[gate], d_second[gate]));
  }
  __device__ __forceinline__ void send(char* to, uint32_t lap, Tf32Format) const {
    const uint4 words = Tf32Format::sent(d_first, d_second);
    store_words(to, make_uint4(words.x | lap, words.y | lap, words.z | lap, words.w | lap));
  }
  __device__ __forceinline__ void remove(char* at) const {
#pragma unroll
    for (int gate = 0; gate < (Numbers::kGatesTogether ? 1 : 3); ++gate)
      store_words(at + gate * kNextGate, absent_words<typename Numbers::Sent>());
  }

  const SequenceBackward<S>& a;
  Coefficients<Value> first, second;  // of the item's units
  Two d_cell;
  Value d_first[3], d_second[3];
  typename Block::Ahead next;
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kSideBySide)
    grid_backward_kernel(const SequenceBackward<typename Shape::S> a, const GridLaunch launch) {
#ifdef LLTM_TENSOR_CORES
  extern __shared__ __align__(16) char memory[];
  GridBackward<Shape>(a, launch, *reinterpret_cast<typename Shape::Memory*>(memory)).run();
#endif
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_BACKWARD_CUH_
