// The forward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_FORWARD_CUH_

#include "sequence_block.cuh"

namespace lltm {
namespace {

template <typename S>
struct ForwardPlace {
  S *gates, *output, *new_cell;
  template <typename Count>
  __device__ __forceinline__ ForwardPlace moved(Count states) const {
    return {gates + 3 * states, output + states, new_cell + states};
  }
};

template <typename Product, typename S, bool kPacked>
__global__ void __launch_bounds__(Product::kThreads, 1) forward_kernel(const SequenceForward<S> a) {
  __shared__ typename Product::Memory memory;
  if (!Product::kIsHere) return;
  Product product(a.shape, a.weights, memory);
  const int H = static_cast<int>(a.shape.state_size);
  const int unit = product.unit();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * Product::kRows + product.row();
  const bool inside = row < a.shape.batch_size && unit < H;
  const bool writes = inside && product.is_first();
  const int count = static_cast<int>(a.shape.steps);

  typedef ForwardPlace<S> Place;
  const Place origin = {a.gates + unit, a.output + unit, a.new_cell + unit};
  const BlockSteps<kPacked, Place> steps(a.shape, a.shape.reverse, row, unit, origin);
  const int64_t at = row * H + unit;
  float cell = inside ? first_value(a.c0, a.cell, at) : 0.0f;
  float h = inside && a.h0 ? load(a.h0[at]) : 0.0f;
  product.put(0, h);
  float bias[3] = {};
#pragma unroll
  for (int gate = 0; gate < 3; ++gate) {
    if (inside && a.bias) bias[gate] = load(a.bias[gate * H + unit]);
  }
  // Those of two steps are on their way; who converts them waits for them.
  S gates[3] = {}, next_gates[3] = {};
  const auto ask = [&](bool exists, const Place& place, S(&to)[3]) {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) load_if(exists, place.gates + gate * H, to[gate]);
  };
  bool has_step = steps.has(0), has_next = steps.has(1);
  Place kept = steps.before_first(), asked = steps.first();
  ask(has_step, asked, gates);
  steps.go_on(asked, 1);
  ask(has_next, asked, next_gates);
  const int asked_gate = array_to_prefetch(unit);

  CellState<float> state = {};
  bool stores = false;
  const auto keep = [&]() {
    const bool keeps = stores && a.new_cell;
    store_if(stores, h, kept.output);
    store_if(keeps, state.new_cell, kept.new_cell);
    store_if(keeps, state.input_gate, kept.gates);
    store_if(keeps, state.output_gate, kept.gates + H);
    store_if(keeps, state.candidate_cell, kept.gates + 2 * H);
  };
  __syncthreads();
  product.multiply(0);

  for (int t = 0; t < count; ++t) {
    const bool exists = kPacked ? has_step : inside;
    float x[3];
    product.take(x);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) x[gate] += load(gates[gate]) + bias[gate];
    // What nobody waits for, while the gate math waits for itself: the product keeps a thread busy.
    keep();
    stores = writes && exists;
    steps.go_on(kept, t);
    steps.go_on(asked, t + 2);
    has_step = has_next;
    has_next = steps.has(t + 2);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) gates[gate] = next_gates[gate];
    ask(has_next, asked, next_gates);
    prefetch_if(asked_gate < 3 && steps.has(t + 2 + kAhead),
                steps.ahead(asked, t + 2).gates + asked_gate * H);

    state = cell_forward_by<BlockMath<S>>(x[0], x[1], x[2], cell);
    if (exists) {
      cell = state.new_cell;
      h = rounded<S>(state.new_h);
    }
    product.put((t + 1) & 1, h);
    __syncthreads();
    product.multiply((t + 1) & 1);
  }
  keep();
  if (!writes) return;
  if (a.cell) a.cell[at] = cell;
  if (a.c_n) store(cell, a.c_n + at);
  if (a.h_n) store(h, a.h_n + at);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
