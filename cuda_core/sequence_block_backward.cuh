// The backward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_

#include "sequence_block.cuh"
#include "sequence_gradient.cuh"

namespace lltm {
namespace {

// What a thread needs of one step, besides d_h and d_cell. As it comes: who converts it waits for
// it.
template <typename S>
struct Saved {
  S grad_output, input_gate, output_gate, candidate_cell, new_cell;
};

template <typename Product, typename S, bool kPacked>
__global__ void __launch_bounds__(Product::kThreads, 1)
    backward_kernel(const SequenceBackward<S> a) {
  __shared__ typename Product::Memory memory;
  if (!Product::kIsHere) return;
  Product product(a.shape, a.weights, memory);
  const int H = static_cast<int>(a.shape.state_size);
  const int unit = product.unit();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * Product::kRows + product.row();
  const bool inside = row < a.shape.batch_size && unit < H;
  const bool writes = inside && product.is_first();

  const UnitPlaces<kPacked> places(a.shape, !a.shape.reverse, row, unit);
  const StepRows<kPacked>& rows = places.rows;
  const int steps = static_cast<int>(a.shape.steps);
  const auto has = [&](int t) { return inside && t < steps && rows.has(t, row); };
  const auto load_saved = [&](bool has_step, UnitPlace place) {
    Saved<S> saved = {};
    if (!has_step) return saved;
    const S* const activations = a.activations + place.gates;
    if (a.grad_output) saved.grad_output = a.grad_output[place.state];
    saved.input_gate = activations[0];
    saved.output_gate = activations[H];
    saved.candidate_cell = activations[2 * H];
    saved.new_cell = a.new_cell[place.state];
    return saved;
  };

  // Before the first step nothing flows: its product is that of zeros.
  const float nothing[3] = {0.0f, 0.0f, 0.0f};
  product.put(1, nothing);
  const int64_t at = row * H + unit;
  float d_cell = inside ? first_value(a.d_c_n, a.d_cell, at) : 0.0f;
  float d_h = inside && a.d_h_n ? load(a.d_h_n[at]) : 0.0f;
  bool had_step = false;
  bool has_next = has(0);
  UnitPlace next_place = {};
  if (has_next) next_place = places.first();
  Saved<S> next = load_saved(has_next, next_place);
  __syncthreads();
  for (int t = 0; t < steps; ++t) {
    const UnitPlace place = next_place;
    const bool has_step = has_next;
    const Saved<S> saved = next;
    has_next = has(t + 1);
    if (has_next) next_place = places.after(place, t, 1);
    next = load_saved(has_next, next_place);
    const Coefficients<float> c = coefficients<BlockMath<S>>(
        load(saved.input_gate), load(saved.output_gate), load(saved.candidate_cell),
        load(saved.new_cell), load(saved.grad_output));
    const float d_old_h = rounded<S>(product.multiply((t + 1) & 1));
    if (had_step) d_h = d_old_h;
    const bool flows = had_step || a.d_h_n || a.grad_output;
    had_step = has_step;
    float d_new_cell = d_cell;
    float d_gates[3];
    differentiate(c, flows, d_h, d_new_cell, d_gates);
    if (has_step) d_cell = d_new_cell;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      d_gates[gate] = has_step ? rounded<S>(d_gates[gate]) : 0.0f;
    }
    product.put(t & 1, d_gates);
    if (writes && has_step) {
      S* const to = a.d_gates + place.gates;
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) store(d_gates[gate], to + gate * H);
    }
    if (has(t + kAhead)) {
      const UnitPlace later = places.after(place, t, kAhead);
      const S* const activations = a.activations + later.gates;
      if (a.grad_output) prefetch(a.grad_output + later.state);
      prefetch(activations);
      prefetch(activations + H);
      prefetch(activations + 2 * H);
      prefetch(a.new_cell + later.state);
    }
    __syncthreads();
  }
  const float d_old_h = product.multiply((steps - 1) & 1);
  if (had_step) d_h = d_old_h;
  if (writes) {
    if (a.d_h0) store(d_h, a.d_h0 + at);
    if (a.d_c0) store(d_cell, a.d_c0 + at);
    if (a.d_cell) a.d_cell[at] = d_cell;
  }
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_
