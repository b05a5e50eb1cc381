#include "autograd.h"

#include "autograd_tools.h"
#include "formula.h"
#include "operators.h"

namespace lltm_bindings {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class CellFunction : public torch::autograd::Function<CellFunction> {
 public:
  static variable_list forward(AutogradContext* ctx, const Variable& input, const Variable& weights,
                               const OptionalTensor& bias, const Variable& old_h,
                               const Variable& old_cell) {
    static const auto op = find_operator<decltype(cell_forward)>("lltm_decoupled::_cell_forward");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto outputs = op.call(input, weights, bias, old_h, old_cell);
    const Variable new_h = std::get<0>(outputs);
    const Variable new_cell = std::get<1>(outputs);
    ctx->set_materialize_grads(false);
    ctx->save_for_backward(
        {input, weights, tensor_or_undefined(bias), old_h, new_cell, std::get<2>(outputs)});
    return {new_h, new_cell};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const Variable grad_h = dense_gradient(grads[0]);
    const Variable grad_cell = dense_gradient(grads[1]);
    if (!grad_h.defined() && !grad_cell.defined()) return variable_list(5);
    const variable_list saved = ctx->get_saved_variables();
    const OptionalTensor bias = optional(saved[2]);
    // old_cell is not saved: its gradient costs nothing.
    const GradientMask mask =
        wanted_gradients(ctx, {saved[0], saved[1], saved[2], saved[3], Variable()},
                         {true, true, saved[2].defined(), true, true});
    CellGradients gradients;
    if (at::GradMode::is_enabled() || are_dual({grad_h, grad_cell})) {
      gradients = cell_backward_formula(optional(grad_h), optional(grad_cell), saved[0], saved[1],
                                        bias, saved[3], saved[4], saved[5], mask);
    } else {
      static const auto op =
          find_operator<decltype(cell_backward)>("lltm_decoupled::_cell_backward");
      at::AutoDispatchBelowADInplaceOrView below_autograd;
      gradients = op.call(optional(grad_h), optional(grad_cell), saved[0], saved[1], bias, saved[3],
                          saved[4], saved[5], mask);
    }
    return {std::get<0>(gradients), std::get<1>(gradients), std::get<2>(gradients),
            std::get<3>(gradients), std::get<4>(gradients)};
  }
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> cell_autograd(const at::Tensor& input, const at::Tensor& weights,
                                                 const OptionalTensor& bias,
                                                 const at::Tensor& old_h,
                                                 const at::Tensor& old_cell) {
  // PyTorch supports no C++ Function under its transforms nor in forward mode: there the
  // differentiable formula runs.
  if (in_transform() || any_of(has_tangent, input, weights, bias, old_h, old_cell)) {
    return cell_formula(input, weights, bias, old_h, old_cell);
  }
  const bool records =
      at::GradMode::is_enabled() && any_of(requires_grad, input, weights, bias, old_h, old_cell);
  if (!records) {
    static const auto op = find_operator<decltype(cell)>("lltm_decoupled::cell");
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.call(input, weights, bias, old_h, old_cell);
  }
  const variable_list outputs = CellFunction::apply(input, weights, bias, old_h, old_cell);
  return std::make_tuple(outputs[0], outputs[1]);
}

}  // namespace lltm_bindings
