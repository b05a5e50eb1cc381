#include "formula.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "checks.h"
#include "sequence_operators.h"
#include "symbolic.h"

namespace lltm_bindings {
namespace {

struct Gates {
  at::Tensor without_bias, input_gate, output_gate, candidate, candidate_cell;
};

// The products in the arguments' dtype, the activations in `dtype`.
Gates compute_gates(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
                    const at::Tensor& old_h, at::ScalarType dtype) {
  Gates gates;
  gates.without_bias = at::mm(at::cat({old_h, input}, 1), weights.t());
  const at::Tensor sum = bias.defined() ? gates.without_bias + bias : gates.without_bias;
  const std::vector<at::Tensor> parts = sum.to(dtype).chunk(3, 1);
  gates.input_gate = at::sigmoid(parts[0]);
  gates.output_gate = at::sigmoid(parts[1]);
  gates.candidate = parts[2];
  gates.candidate_cell = at::elu(parts[2]);
  return gates;
}

// Contiguous, as kernels give it.
std::tuple<at::Tensor, at::Tensor> state_of(const Gates& gates, const at::Tensor& old_cell) {
  const at::Tensor new_cell = old_cell.contiguous() + gates.candidate_cell * gates.input_gate;
  return std::make_tuple(at::tanh(new_cell) * gates.output_gate, new_cell);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> cell_forward_formula(const at::Tensor& input,
                                                                    const at::Tensor& weights,
                                                                    const OptionalTensor& bias,
                                                                    const at::Tensor& old_h,
                                                                    const at::Tensor& old_cell) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  check_cell<Size>(input, weights, bias_or_none, old_h, old_cell);
  const Gates gates = compute_gates(input, weights, bias_or_none, old_h, input.scalar_type());
  auto state = state_of(gates, old_cell);
  return std::make_tuple(std::get<0>(state), std::get<1>(state), gates.without_bias);
}

std::tuple<at::Tensor, at::Tensor> cell_formula(const at::Tensor& input, const at::Tensor& weights,
                                                const OptionalTensor& bias, const at::Tensor& old_h,
                                                const at::Tensor& old_cell) {
  auto outputs = cell_forward_formula(input, weights, bias, old_h, old_cell);
  return std::make_tuple(std::get<0>(outputs), std::get<1>(outputs));
}

std::tuple<at::Tensor, at::Tensor> cell_mixed_formula(const at::Tensor& input,
                                                      const at::Tensor& weights,
                                                      const OptionalTensor& bias,
                                                      const at::Tensor& old_h,
                                                      const at::Tensor& old_cell) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  check_cell<Size>(input, weights, bias_or_none, old_h, old_cell.to(input.scalar_type()));
  const at::ScalarType wide = at::promote_types(input.scalar_type(), old_cell.scalar_type());
  return state_of(compute_gates(input, weights, bias_or_none, old_h, wide), old_cell);
}

CellGradients cell_backward_formula(const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
                                    const at::Tensor& input, const at::Tensor& weights,
                                    const OptionalTensor& bias, const at::Tensor& old_h,
                                    const at::Tensor& new_cell, const at::Tensor&,
                                    GradientMask mask) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  check_cell<Size>(input, weights, bias_or_none, old_h, new_cell);
  const Size state_size = size_of(old_h, 1);
  const Gates gates = compute_gates(input, weights, bias_or_none, old_h, input.scalar_type());
  const at::Tensor tanh_cell = at::tanh(new_cell);

  at::Tensor d_old_cell = tensor_or_undefined(grad_cell);
  at::Tensor d_output;
  if (grad_h.has_value() && grad_h->defined()) {
    const at::Tensor through_h = *grad_h * gates.output_gate * (1 - tanh_cell * tanh_cell);
    d_old_cell = d_old_cell.defined() ? through_h + d_old_cell : through_h;
    d_output = *grad_h * tanh_cell * (1 - gates.output_gate) * gates.output_gate;
  } else {
    d_output = at::zeros_like(new_cell);
    // A result of its own, of no gradient too.
    d_old_cell = d_old_cell.defined() ? d_old_cell.clone() : at::zeros_like(new_cell);
  }
  const at::Tensor d_input_gate =
      d_old_cell * gates.candidate_cell * (1 - gates.input_gate) * gates.input_gate;
  // ELU'(x) = ELU(x) + 1 below zero, and 1 above.
  const at::Tensor slope = at::elu(gates.candidate.clamp_max(0)) + 1;
  const at::Tensor d_candidate = d_old_cell * gates.input_gate * slope;
  const at::Tensor d_gates = at::cat({d_input_gate, d_output, d_candidate}, 1);

  at::Tensor d_input, d_weights, d_bias, d_old_h;
  if (mask[0]) d_input = d_gates.mm(columns_of(weights, state_size, size_of(input, 1)));
  if (mask[1]) d_weights = d_gates.t().mm(at::cat({old_h, input}, 1));
  if (mask[2] && bias_or_none.defined()) d_bias = d_gates.sum(0, bias_or_none.dim() == 2);
  if (mask[3]) d_old_h = d_gates.mm(columns_of(weights, 0, state_size));
  if (mask[4]) d_old_cell = d_old_cell.contiguous();
  return std::make_tuple(d_input, d_weights, d_bias, d_old_h, mask[4] ? d_old_cell : at::Tensor());
}

namespace {

// The rows of each step: [B, ...], or as many as batch_sizes says.
std::vector<at::Tensor> steps_of(const at::Tensor& rows, const at::Tensor& batch_sizes) {
  if (!rows.defined()) return {};
  if (!batch_sizes.defined()) return rows.unbind(0);
  const int64_t* const sizes = batch_sizes.data_ptr<int64_t>();
  return rows.split_with_sizes(at::IntArrayRef(sizes, static_cast<size_t>(batch_sizes.numel())), 0);
}

at::Tensor first_rows(const at::Tensor& state, const at::Tensor& like, bool packed) {
  return packed ? state.narrow(0, 0, like.size(0)) : state;
}

at::Tensor replace_rows(const at::Tensor& state, const at::Tensor& rows, bool packed) {
  if (!packed || rows.size(0) == state.size(0)) return rows;
  return at::cat({rows, state.narrow(0, rows.size(0), state.size(0) - rows.size(0))}, 0);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_formula(const SequenceArguments& a) {
  const bool packed = a.batch_sizes.defined();
  const SequenceSizesOf<Size> sizes = check_sequence<Size>(a);
  const Size features = sizes.input_features;
  const Size H = sizes.state_size;
  const at::Tensor weights_h_t = columns_of(a.weights, 0, H).t();
  const at::Tensor input = packed ? a.input : a.input.flatten(0, 1);
  at::Tensor gates = input.mm(columns_of(a.weights, H, features).t());
  if (a.bias.defined()) gates = gates + a.bias;
  const Size rows_shape[] = {size_of(a.input, 0), size_of(a.input, 1), 3 * H};
  if (!packed) gates = reshaped(gates, rows_shape);
  // Steps without rows are none.
  std::vector<at::Tensor> steps;
  if (!is_zero(sizes.rows)) steps = steps_of(gates, a.batch_sizes);
  const std::vector<at::Tensor> keep_h = steps_of(a.zoneout_h, a.batch_sizes);
  const std::vector<at::Tensor> keep_c = steps_of(a.zoneout_c, a.batch_sizes);

  // Packed data has a state: check_sequence saw to it.
  const Size shape[] = {sizes.batch_size, H};
  at::Tensor h = a.h0.defined() ? a.h0 : zeros_of(shape, a.input.options());
  at::Tensor c = a.c0.defined() ? a.c0 : zeros_of(shape, a.input.options());
  std::vector<at::Tensor> outputs(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t t = a.reverse ? steps.size() - 1 - i : i;
    const at::Tensor old_h = first_rows(h, steps[t], packed);
    const at::Tensor old_c = first_rows(c, steps[t], packed);
    const std::vector<at::Tensor> parts = (steps[t] + old_h.mm(weights_h_t)).chunk(3, 1);
    at::Tensor new_c = old_c + at::elu(parts[2]) * at::sigmoid(parts[0]);
    at::Tensor new_h = at::tanh(new_c) * at::sigmoid(parts[1]);
    if (!keep_h.empty()) new_h = at::where(keep_h[t], old_h, new_h);
    if (!keep_c.empty()) new_c = at::where(keep_c[t], old_c, new_c);
    outputs[t] = new_h;
    h = replace_rows(h, new_h, packed);
    c = replace_rows(c, new_c, packed);
  }
  // No output is another one, or an input, or a view; and all are contiguous.
  const at::MemoryFormat dense = at::MemoryFormat::Contiguous;
  at::Tensor output;
  if (outputs.empty()) {
    output = gates.chunk(3, -1)[0].clone(dense);
  } else {
    output = packed ? at::cat(outputs, 0) : at::stack(outputs, 0);
  }
  return std::make_tuple(output, h.clone(dense), c.clone(dense));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_composite(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  return sequence_formula(sequence_arguments(input, weights, bias, h0, c0, batch_sizes, reverse,
                                             recompute, zoneout_h, zoneout_c));
}

}  // namespace lltm_bindings
