#include "autograd.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/FuncTorchTLS.h>
#endif

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
    const Variable& grad_h = grads[0];
    const Variable& grad_cell = grads[1];
    if (!grad_h.defined() && !grad_cell.defined()) return variable_list(5);
    const variable_list saved = ctx->get_saved_variables();
    const OptionalTensor bias = optional(saved[2]);
    const GradientMask mask = wanted(ctx, saved);
    CellGradients gradients;
    if (at::GradMode::is_enabled()) {
      // create_graph: the gradients are differentiated in turn.
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

 private:
  static OptionalTensor optional(const Variable& variable) {
    return variable.defined() ? OptionalTensor(variable) : OptionalTensor();
  }

  // Which gradients this backward pass wants.
  static GradientMask wanted(AutogradContext* ctx, const variable_list& saved) {
    const bool has_bias = saved[2].defined();
#if TORCH_VERSION_MAJOR >= 2
    // Edges are counted without an absent bias.
    GradientMask mask;
    size_t edge = 0;
    for (size_t i = 0; i < mask.size(); ++i) {
      mask[i] = (i != 2 || has_bias) && ctx->needs_input_grad(edge++);
    }
    return mask;
#else
    // torch 1 does not tell. What requires no gradient needs none; of the others autograd drops
    // what nobody wants. That of old_cell, which is not saved, costs nothing.
    (void)ctx;
    return {saved[0].requires_grad(), saved[1].requires_grad(),
            has_bias && saved[2].requires_grad(), saved[3].requires_grad(), true};
#endif
  }
};

template <typename Predicate>
bool any_of(const Predicate& predicate, const at::Tensor& input, const at::Tensor& weights,
            const OptionalTensor& bias, const at::Tensor& old_h, const at::Tensor& old_cell) {
  return predicate(input) || predicate(weights) || (bias.has_value() && predicate(*bias)) ||
         predicate(old_h) || predicate(old_cell);
}

bool requires_grad(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

bool has_tangent(const at::Tensor& tensor) {
  return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

// Whether a transform of torch.func (grad, vmap, jvp, ...) is at work. PyTorch tells only by the
// error that it would raise for our Function.
bool in_transform() {
#if TORCH_VERSION_MAJOR >= 2
  const auto& transforms = at::functorch::functorchTLSAccessor();
  if (!transforms) return false;
  try {
    transforms->checkSupportsCppAutogradFunction();
  } catch (const c10::Error&) {
    return true;
  }
#endif
  return false;
}

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
