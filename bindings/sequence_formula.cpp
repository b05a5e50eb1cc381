#include <ATen/ATen.h>

#include <algorithm>

#include "schedule.h"
#include "sequence_operators.h"

namespace lltm_bindings {
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

  at::Tensor h = a.h0;
  at::Tensor c = a.c0;
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
    const at::Tensor& h0, const at::Tensor& c0, const OptionalTensor& batch_sizes, bool reverse,
    bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c) {
  return sequence_formula(sequence_arguments(input, weights, bias, h0, c0, batch_sizes, reverse,
                                             recompute, zoneout_h, zoneout_c));
}

}  // namespace lltm_bindings
