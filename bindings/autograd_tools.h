// What the autograd functions of the operators share.
#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/FuncTorchTLS.h>
#endif

#include <algorithm>
#include <array>
#include <vector>

#include "cell.h"

namespace lltm_bindings {

inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : OptionalTensor();
}

// Which gradients a backward pass wants, of the five inputs (input, weights, bias, state, state)
// that a Function's apply was called with first; `given`: which of them are not absent.
inline GradientMask wanted_gradients(torch::autograd::AutogradContext* ctx,
                                     const std::array<at::Tensor, 5>& inputs,
                                     const std::array<bool, 5>& given) {
  GradientMask mask;
#if TORCH_VERSION_MAJOR >= 2
  // Edges are counted without what is absent.
  size_t edge = 0;
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = given[i] && ctx->needs_input_grad(edge++);
#else
  // torch 1 does not tell. What requires no gradient needs none; of the others autograd drops
  // what nobody wants. One that was not saved counts as wanted.
  (void)ctx;
  for (size_t i = 0; i < mask.size(); ++i) {
    mask[i] = given[i] && (!inputs[i].defined() || inputs[i].requires_grad());
  }
#endif
  return mask;
}

inline bool requires_grad(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

inline bool has_tangent(const at::Tensor& tensor) {
  return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

inline bool is_sparse(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() != at::kStrided;
}

// A gradient may come in sparse: whoever uses a few elements of an output may give those alone.
inline at::Tensor dense_gradient(const at::Tensor& grad) {
  return is_sparse(grad) ? grad.to_dense() : grad;
}

template <typename Predicate>
bool any_of(const Predicate& predicate, const at::Tensor& input, const at::Tensor& weights,
            const OptionalTensor& bias, const OptionalTensor& state,
            const OptionalTensor& other_state) {
  const auto holds = [&](const OptionalTensor& tensor) {
    return tensor.has_value() && predicate(*tensor);
  };
  return predicate(input) || predicate(weights) || holds(bias) || holds(state) ||
         holds(other_state);
}

#if TORCH_VERSION_MAJOR >= 2
// Raises c10::Error under a transform of torch.func. torch 2.0 has only the second of these names.
template <typename Transforms>
auto refuse_transforms(const Transforms& transforms, int)
    -> decltype(transforms.checkSupportsCppAutogradFunction()) {
  transforms.checkSupportsCppAutogradFunction();
}

template <typename Transforms>
void refuse_transforms(const Transforms& transforms, ...) {
  transforms.checkSupportsSingleLevelAutogradFunction();
}
#endif

// Whether a transform of torch.func (grad, vmap, jvp, ...) is at work. PyTorch tells only by the
// error that it would raise for our Function.
inline bool in_transform() {
#if TORCH_VERSION_MAJOR >= 2
  const auto& transforms = at::functorch::functorchTLSAccessor();
  if (!transforms) return false;
  try {
    refuse_transforms(*transforms, 0);
  } catch (const c10::Error&) {
    return true;
  }
#endif
  return false;
}

// While one lives, operators on plain tensors run as if there were no transform.
struct OutsideTransforms {
#if TORCH_VERSION_MAJOR >= 2
  c10::impl::ExcludeDispatchKeyGuard guard{
      c10::DispatchKeySet({c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                           c10::DispatchKey::FuncTorchDynamicLayerBackMode})};
#else
  OutsideTransforms() {}
#endif
};

// Whether incoming gradients are differentiated forward, or mapped over: as with create_graph,
// where grad mode is on, the gradients are differentiated in turn then.
inline bool are_dual(const std::vector<at::Tensor>& grads) {
  return in_transform() || std::any_of(grads.begin(), grads.end(), has_tangent);
}

}  // namespace lltm_bindings
