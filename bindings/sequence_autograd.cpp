#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include "autograd_tools.h"
#include "operators.h"
#include "sequence_operators.h"

namespace lltm_bindings {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The gradients as differentiable functions of everything: those of the formula, by autograd.
variable_list differentiable_gradients(SequenceArguments a, const variable_list& grads,
                                       GradientMask mask) {
  const bool creates_graph = at::GradMode::is_enabled();
  at::AutoGradMode records(true);
  const auto values = [&a] {
    OutsideTransforms outside;  // as forward was: only gradients may be inside
    a.batch_sizes = plain_batch_sizes(optional(a.batch_sizes));
    // As views: autograd stops at them. At the arguments themselves it would run their hooks, and
    // where one depends on another go on to that, through whatever lies between.
    for (at::Tensor* argument : {&a.input, &a.weights, &a.bias, &a.h0, &a.c0}) {
      if (argument->defined()) *argument = argument->view_as(*argument);
    }
    return sequence_formula(a);
  }();
  const variable_list results = {std::get<0>(values), std::get<1>(values), std::get<2>(values)};
  const variable_list arguments = {a.input, a.weights, a.bias, a.h0, a.c0};
  variable_list outputs, grad_outputs, inputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!grads[i].defined() || !results[i].requires_grad()) continue;
    outputs.push_back(results[i]);
    grad_outputs.push_back(grads[i]);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (mask[i]) inputs.push_back(arguments[i]);
  }
  variable_list gradients(5);
  if (inputs.empty()) return gradients;
  variable_list wanted(inputs.size());
  if (!outputs.empty()) {
    wanted = torch::autograd::grad(outputs, inputs, grad_outputs, /*retain_graph=*/creates_graph,
                                   creates_graph, /*allow_unused=*/true);
  }
  size_t next = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!mask[i]) continue;
    // Zeros, as from the kernels, of what no output depends on: without a step the weights.
    const at::Tensor gradient = wanted[next++];
    gradients[i] = gradient.defined() ? gradient : at::zeros_like(arguments[i]);
  }
  return gradients;
}

class SequenceFunction : public torch::autograd::Function<SequenceFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Variable& input, const Variable& weights,
                               const OptionalTensor& bias, const OptionalTensor& h0,
                               const OptionalTensor& c0, const OptionalTensor& batch_sizes,
                               bool reverse, bool recompute, const OptionalTensor& zoneout_h,
                               const OptionalTensor& zoneout_c) {
    static const auto op =
        find_operator<decltype(sequence_forward)>("lltm_decoupled::_sequence_forward");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto outputs = op.call(input, weights, bias, h0, c0, batch_sizes, reverse, recompute,
                                 zoneout_h, zoneout_c);
    const Variable output = std::get<0>(outputs);
    ctx->set_materialize_grads(false);
    ctx->saved_data["reverse"] = reverse;
    ctx->saved_data["recompute"] = recompute;
    ctx->save_for_backward({input, weights, tensor_or_undefined(bias), tensor_or_undefined(h0),
                            tensor_or_undefined(c0), tensor_or_undefined(batch_sizes),
                            tensor_or_undefined(zoneout_h), tensor_or_undefined(zoneout_c), output,
                            std::get<3>(outputs), std::get<4>(outputs)});
    return {output, std::get<1>(outputs), std::get<2>(outputs)};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& any_grads) {
    variable_list gradients(10);
    const variable_list grads = {dense_gradient(any_grads[0]), dense_gradient(any_grads[1]),
                                 dense_gradient(any_grads[2])};
    if (!grads[0].defined() && !grads[1].defined() && !grads[2].defined()) return gradients;
    const variable_list s = ctx->get_saved_variables();
    const SequenceArguments a = {s[0],
                                 s[1],
                                 s[2],
                                 s[3],
                                 s[4],
                                 s[5],
                                 ctx->saved_data["reverse"].toBool(),
                                 ctx->saved_data["recompute"].toBool(),
                                 s[6],
                                 s[7]};
    const bool has_state = a.h0.defined();
    const GradientMask mask =
        wanted_gradients(ctx, {a.input, a.weights, a.bias, a.h0, a.c0},
                         {true, true, a.bias.defined(), has_state, has_state});
    if (at::GradMode::is_enabled() || are_dual(grads)) {
      const variable_list values = differentiable_gradients(a, grads, mask);
      std::copy(values.begin(), values.end(), gradients.begin());
      return gradients;
    }
    static const auto op =
        find_operator<decltype(sequence_backward)>("lltm_decoupled::_sequence_backward");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    const CellGradients values =
        op.call(optional(grads[0]), optional(grads[1]), optional(grads[2]), a.input, a.weights,
                optional(a.bias), optional(a.h0), optional(a.c0), s[8], s[9], s[10],
                optional(a.batch_sizes), a.reverse, a.recompute, optional(a.zoneout_h),
                optional(a.zoneout_c), mask);
    gradients[0] = std::get<0>(values);
    gradients[1] = std::get<1>(values);
    gradients[2] = std::get<2>(values);
    gradients[3] = std::get<3>(values);
    gradients[4] = std::get<4>(values);
    return gradients;
  }
};

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autograd(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  // Without values they would choose the kernels of meta tensors, which torch 1 does not have.
  if (batch_sizes.has_value() && batch_sizes->is_meta() && !input.is_meta()) {
    check_numbers(*batch_sizes);
  }
  // As for the cell, and where the core has no kernels: there nothing else is differentiable.
  const bool has_kernels = (input.is_cpu() || input.is_cuda() || input.is_meta()) &&
                           !any_of(is_sparse, input, weights, bias, h0, c0) &&
                           !any_of(is_sparse, input, input, batch_sizes, zoneout_h, zoneout_c);
  if (!has_kernels || in_transform() || any_of(has_tangent, input, weights, bias, h0, c0)) {
    return sequence_formula(sequence_arguments(input, weights, bias, h0, c0, batch_sizes, reverse,
                                               recompute, zoneout_h, zoneout_c));
  }
  if (!at::GradMode::is_enabled() || !any_of(requires_grad, input, weights, bias, h0, c0)) {
    static const auto op = find_operator<decltype(sequence)>("lltm_decoupled::sequence");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.call(input, weights, bias, h0, c0, batch_sizes, reverse, recompute, zoneout_h,
                   zoneout_c);
  }
  const variable_list outputs = SequenceFunction::apply(input, weights, bias, h0, c0, batch_sizes,
                                                        reverse, recompute, zoneout_h, zoneout_c);
  return std::make_tuple(outputs[0], outputs[1], outputs[2]);
}

}  // namespace lltm_bindings
