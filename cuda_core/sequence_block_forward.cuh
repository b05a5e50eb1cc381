// The forward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_FORWARD_CUH_

#include "sequence_block.cuh"

namespace lltm {
namespace {

// Of a unit of a row, as they come: who converts them waits for them.
template <typename S>
struct StepGates {
  bool exists;
  UnitPlace place;
  S gates[3];
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

  const UnitPlaces<kPacked> places(a.shape, a.shape.reverse, row, unit);
  const StepRows<kPacked>& rows = places.rows;
  const int64_t at = row * H + unit;
  float cell = inside ? first_value(a.c0, a.cell, at) : 0.0f;
  float h = inside && a.h0 ? load(a.h0[at]) : 0.0f;
  product.put(0, h);
  const int steps = static_cast<int>(a.shape.steps);
  const auto has = [&](int t) { return inside && t < steps && rows.has(t, row); };
  const auto load_gates = [&](StepGates<S>& step) {
    if (!step.exists) return;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) step.gates[gate] = a.gates[step.place.gates + gate * H];
  };
  float bias[3] = {};
#pragma unroll
  for (int gate = 0; gate < 3; ++gate) {
    if (inside && a.bias) bias[gate] = load(a.bias[gate * H + unit]);
  }
  StepGates<S> now = {}, next = {};
  now.exists = has(0);
  if (now.exists) now.place = places.first();
  load_gates(now);
  next.exists = has(1);
  if (next.exists) next.place = places.after(now.place, 0, 1);
  load_gates(next);
  __syncthreads();
  product.multiply(0);

  for (int t = 0; t < steps; ++t) {
    float x[3];
    product.take(x);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) x[gate] += load(now.gates[gate]) + bias[gate];
    const CellState<float> state = cell_forward_by<BlockMath<S>>(x[0], x[1], x[2], cell);
    if (now.exists) {
      cell = state.new_cell;
      h = rounded<S>(state.new_h);
    }
    product.put((t + 1) & 1, h);
    __syncthreads();
    product.multiply((t + 1) & 1);
    // While the product is under way: what nobody waits for.
    const bool stores = writes && now.exists;
    const bool keeps = stores && a.new_cell;
    S* const gates = a.gates + now.place.gates;
    store_if(stores, h, a.output + now.place.state);
    store_if(keeps, state.new_cell, a.new_cell + now.place.state);
    store_if(keeps, state.input_gate, gates);
    store_if(keeps, state.output_gate, gates + H);
    store_if(keeps, state.candidate_cell, gates + 2 * H);
    now = next;
    next.exists = has(t + 2);
    if (next.exists) next.place = places.after(now.place, t + 1, 1);
    load_gates(next);
    const bool prefetches = has(t + 1 + kAhead);
    const S* const later =
        prefetches ? a.gates + places.after(now.place, t + 1, kAhead).gates : a.gates;
    prefetch_if(prefetches, later);
    prefetch_if(prefetches, later + H);
    prefetch_if(prefetches, later + 2 * H);
  }
  if (!writes) return;
  if (a.cell) a.cell[at] = cell;
  if (a.c_n) store(cell, a.c_n + at);
  if (a.h_n) store(h, a.h_n + at);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
