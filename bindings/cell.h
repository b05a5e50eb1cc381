// The cell on tensors: check, allocate, multiply, call the core. No autograd here.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>

#include <array>
#include <tuple>

namespace lltm_bindings {

typedef c10::optional<at::Tensor> OptionalTensor;

// The gradients of (input, weights, bias, old_h, old_cell), in this order everywhere.
typedef std::array<bool, 5> GradientMask;
typedef std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> CellGradients;

// -> new_h, new_cell, both (batch_size, state_size)
std::tuple<at::Tensor, at::Tensor> cell(const at::Tensor& input, const at::Tensor& weights,
                                        const OptionalTensor& bias, const at::Tensor& old_h,
                                        const at::Tensor& old_cell);

// -> new_h, new_cell and, for backward, the gates without bias (batch_size, 3 * state_size)
std::tuple<at::Tensor, at::Tensor, at::Tensor> cell_forward(const at::Tensor& input,
                                                            const at::Tensor& weights,
                                                            const OptionalTensor& bias,
                                                            const at::Tensor& old_h,
                                                            const at::Tensor& old_cell);

// Only the gradients that `mask` asks for are computed; the others are undefined.
CellGradients cell_backward(const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
                            const at::Tensor& input, const at::Tensor& weights,
                            const OptionalTensor& bias, const at::Tensor& old_h,
                            const at::Tensor& new_cell, const at::Tensor& gates, GradientMask mask);

// The core's two calls, on checked tensors; everything but the outputs may have any strides.
struct Activations {
  at::Tensor input_gate, output_gate, candidate_cell;  // all undefined: not wanted
};
std::tuple<at::Tensor, at::Tensor> run_cell_forward(const at::Tensor& gates, const at::Tensor& bias,
                                                    const at::Tensor& old_cell,
                                                    const Activations& save);
// -> d_gates, d_old_cell
std::tuple<at::Tensor, at::Tensor> run_cell_backward(const at::Tensor& grad_h,
                                                     const at::Tensor& grad_cell,
                                                     const at::Tensor& gates,
                                                     const at::Tensor& bias,
                                                     const at::Tensor& new_cell);

inline at::Tensor tensor_or_undefined(const OptionalTensor& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

}  // namespace lltm_bindings
