// The forward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_FORWARD_CUH_

#include "sequence_block.cuh"

namespace lltm {
namespace {

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
  bool has_next = inside && rows.has(0, row);
  UnitPlace next_place = {};
  if (has_next) next_place = places.first();
  S next[3] = {};  // as they come: who converts them waits for them
  float bias[3] = {};
#pragma unroll
  for (int gate = 0; gate < 3; ++gate) {
    if (inside && a.bias) bias[gate] = load(a.bias[gate * H + unit]);
    if (has_next) next[gate] = a.gates[next_place.gates + gate * H];
  }
  __syncthreads();

  const int steps = static_cast<int>(a.shape.steps);
  for (int t = 0; t < steps; ++t) {
    const UnitPlace place = next_place;
    const bool has_step = has_next;
    has_next = inside && t + 1 < steps && rows.has(t + 1, row);
    if (has_next) next_place = places.after(place, t, 1);
    const bool prefetches = inside && t + kAhead < steps && rows.has(t + kAhead, row);
    float x[3];
    product.multiply(t & 1, x);
    const S* const next_gates = a.gates + next_place.gates;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      x[gate] += load(next[gate]) + bias[gate];
      if (has_next) next[gate] = next_gates[gate * H];
    }
    const CellState<float> state = cell_forward_by<BlockMath<S>>(x[0], x[1], x[2], cell);
    if (has_step) {
      cell = state.new_cell;
      h = rounded<S>(state.new_h);
    }
    product.put((t + 1) & 1, h);
    if (prefetches) {
      const S* const later = a.gates + places.after(place, t, kAhead).gates;
      prefetch(later);
      prefetch(later + H);
      prefetch(later + 2 * H);
    }
    if (writes && has_step) {
      store(h, a.output + place.state);
      if (a.new_cell) {
        S* const gates = a.gates + place.gates;
        store(state.new_cell, a.new_cell + place.state);
        store(state.input_gate, gates);
        store(state.output_gate, gates + H);
        store(state.candidate_cell, gates + 2 * H);
      }
    }
    __syncthreads();
  }
  if (!writes) return;
  if (a.cell) a.cell[at] = cell;
  if (a.c_n) store(cell, a.c_n + at);
  if (a.h_n) store(h, a.h_n + at);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
