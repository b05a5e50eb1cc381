#include "formula.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "checks.h"
#include "schedule.h"
#include "sequence_operators.h"

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

std::tuple<at::Tensor, at::Tensor> state_of(const Gates& gates, const at::Tensor& old_cell) {
  const at::Tensor new_cell = old_cell + gates.candidate_cell * gates.input_gate;
  return std::make_tuple(at::tanh(new_cell) * gates.output_gate, new_cell);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> cell_forward_formula(const at::Tensor& input,
                                                                    const at::Tensor& weights,
                                                                    const OptionalTensor& bias,
                                                                    const at::Tensor& old_h,
                                                                    const at::Tensor& old_cell) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  check_cell(input, weights, bias_or_none, old_h, old_cell);
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
  check_cell(input, weights, bias_or_none, old_h, old_cell.to(input.scalar_type()));
  const at::ScalarType wide = at::promote_types(input.scalar_type(), old_cell.scalar_type());
  return state_of(compute_gates(input, weights, bias_or_none, old_h, wide), old_cell);
}

CellGradients cell_backward_formula(const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
                                    const at::Tensor& input, const at::Tensor& weights,
                                    const OptionalTensor& bias, const at::Tensor& old_h,
                                    const at::Tensor& new_cell, const at::Tensor&,
                                    GradientMask mask) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  const CellSizes sizes = check_cell(input, weights, bias_or_none, old_h, new_cell);
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
  if (mask[0]) d_input = d_gates.mm(weights.narrow(1, sizes.state_size, sizes.input_features));
  if (mask[1]) d_weights = d_gates.t().mm(at::cat({old_h, input}, 1));
  if (mask[2] && bias_or_none.defined()) d_bias = d_gates.sum(0, bias_or_none.dim() == 2);
  if (mask[3]) d_old_h = d_gates.mm(weights.narrow(1, 0, sizes.state_size));
  return std::make_tuple(d_input, d_weights, d_bias, d_old_h, mask[4] ? d_old_cell : at::Tensor());
}

namespace {

// The first rows replaced.
at::Tensor replace_rows(const at::Tensor& state, const at::Tensor& rows) {
  const int64_t n = rows.size(0);
  if (n == state.size(0)) return rows;
  return at::cat({rows, state.narrow(0, n, state.size(0) - n)}, 0);
}

at::Tensor zoned_out(const at::Tensor& mask, const Step& step, const at::Tensor& old_state,
                     const at::Tensor& new_state) {
  if (!mask.defined()) return new_state;
  return at::where(mask.narrow(0, step.first, step.rows), old_state, new_state);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_formula(const SequenceArguments& a) {
  const SequenceSizes sizes = check_sequence(a);
  const Schedule schedule(a, sizes);
  const int64_t H = sizes.state_size;
  const at::Tensor weights_h_t = a.weights.narrow(1, 0, H).t();
  at::Tensor gates = as_rows(a.input).mm(a.weights.narrow(1, H, sizes.input_features).t());
  if (a.bias.defined()) gates = gates + a.bias;
  const at::Tensor keep_h = a.zoneout_h.defined() ? as_rows(a.zoneout_h) : a.zoneout_h;
  const at::Tensor keep_c = a.zoneout_c.defined() ? as_rows(a.zoneout_c) : a.zoneout_c;

  const int64_t shape[] = {sizes.batch_size, H};
  at::Tensor h = a.h0.defined() ? a.h0 : at::zeros(shape, a.input.options());
  at::Tensor c = a.c0.defined() ? a.c0 : at::zeros(shape, a.input.options());
  std::vector<at::Tensor> outputs;
  outputs.reserve(static_cast<size_t>(schedule.steps()));
  for (int64_t i = 0; i < schedule.steps(); ++i) {
    const Step step = schedule[i];
    const at::Tensor old_h = h.narrow(0, 0, step.rows);
    const at::Tensor old_c = c.narrow(0, 0, step.rows);
    const at::Tensor sum = gates.narrow(0, step.first, step.rows) + old_h.mm(weights_h_t);
    const std::vector<at::Tensor> parts = sum.chunk(3, 1);
    const at::Tensor new_c = old_c + at::elu(parts[2]) * at::sigmoid(parts[0]);
    const at::Tensor new_h = at::tanh(new_c) * at::sigmoid(parts[1]);
    outputs.push_back(zoned_out(keep_h, step, old_h, new_h));
    h = replace_rows(h, outputs.back());
    c = replace_rows(c, zoned_out(keep_c, step, old_c, new_c));
  }
  if (a.reverse) std::reverse(outputs.begin(), outputs.end());
  at::Tensor output = outputs.empty() ? gates.narrow(1, 0, H) : at::cat(outputs, 0);
  if (!a.batch_sizes.defined()) output = output.view({sizes.steps, sizes.batch_size, H});
  // No output is another one, or an input.
  return std::make_tuple(output, h.clone(), c.clone());
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
