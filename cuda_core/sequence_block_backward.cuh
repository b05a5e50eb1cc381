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

template <typename S>
struct BackwardPlace {
  const S *activations, *new_cell, *grad_output;
  S* d_gates;
  template <typename Count>
  __device__ __forceinline__ BackwardPlace moved(Count states) const {
    return {activations + 3 * states, new_cell + states, grad_output + states,
            d_gates + 3 * states};
  }
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
  const int count = static_cast<int>(a.shape.steps);

  typedef BackwardPlace<S> Place;
  const Place origin = {a.activations + unit, a.new_cell + unit, a.grad_output + unit,
                        a.d_gates + unit};
  const BlockSteps<kPacked, Place> steps(a.shape, !a.shape.reverse, row, unit, origin);
  const auto ask = [&](bool exists, const Place& place, Saved<S>& to) {
    load_if(exists && a.grad_output, place.grad_output, to.grad_output);
    load_if(exists, place.activations, to.input_gate);
    load_if(exists, place.activations + H, to.output_gate);
    load_if(exists, place.activations + 2 * H, to.candidate_cell);
    load_if(exists, place.new_cell, to.new_cell);
  };
  const auto coefficients_of = [&](const Saved<S>& saved) {
    return coefficients<BlockMath<S>>(load(saved.input_gate), load(saved.output_gate),
                                      load(saved.candidate_cell), load(saved.new_cell),
                                      load(saved.grad_output));
  };
  bool has_step = steps.has(0), has_next = steps.has(1);
  Place kept = steps.before_first(), asked = steps.first();
  Saved<S> next = {};
  ask(has_step, asked, next);
  Coefficients<float> c = coefficients_of(next);
  steps.go_on(asked, 1);
  ask(has_next, asked, next);
  const int asked_array = array_to_prefetch(unit);

  // Before the first step nothing flows: its product is that of zeros.
  float d_gates[3] = {0.0f, 0.0f, 0.0f};
  product.put(1, d_gates);
  const int64_t at = row * H + unit;
  float d_cell = inside ? first_value(a.d_c_n, a.d_cell, at) : 0.0f;
  float d_h = inside && a.d_h_n ? load(a.d_h_n[at]) : 0.0f;
  const bool flows_at_first = a.d_h_n || a.grad_output;
  bool had_step = false;
  const auto keep = [&]() {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      store_if(writes && had_step, d_gates[gate], kept.d_gates + gate * H);
    }
  };
  __syncthreads();
  product.multiply(1);

  for (int t = 0; t < count; ++t) {
    const bool exists = kPacked ? has_step : inside;
    const float d_old_h = rounded<S>(product.take());
    if (had_step) d_h = d_old_h;
    // What nobody waits for, as in the forward pass.
    keep();
    steps.go_on(kept, t);

    float d_new_cell = d_cell;
    differentiate(c, had_step || flows_at_first, d_h, d_new_cell, d_gates);
    had_step = exists;
    if (exists) d_cell = d_new_cell;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      d_gates[gate] = exists ? rounded<S>(d_gates[gate]) : 0.0f;
    }
    product.put(t & 1, d_gates);
    c = coefficients_of(next);
    steps.go_on(asked, t + 2);
    has_step = has_next;
    has_next = steps.has(t + 2);
    ask(has_next, asked, next);
    const bool prefetches = steps.has(t + 2 + kAhead);
    const Place later = steps.ahead(asked, t + 2);
    const S* const activations = later.activations + asked_array * H;
    prefetch_if(prefetches && a.grad_output, later.grad_output);
    prefetch_if(prefetches, asked_array < 3 ? activations : later.new_cell);
    __syncthreads();
    product.multiply(t & 1);
  }
  keep();
  const float d_old_h = product.take();
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
