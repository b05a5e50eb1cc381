// The raw functions of the tutorial's compiled modules: tensors and lists, no autograd.
#pragma once

#include <vector>

#include "cell.h"

namespace lltm_bindings {

// -> new_h, new_cell, input_gate, output_gate, candidate_cell, X, gate_weights
std::vector<at::Tensor> tutorial_forward(const at::Tensor& input, const at::Tensor& weights,
                                         const OptionalTensor& bias, const at::Tensor& old_h,
                                         const at::Tensor& old_cell);

// -> d_old_h, d_input, d_weights, d_bias (1, 3 * state_size), d_old_cell, d_gates
std::vector<at::Tensor> tutorial_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                          const at::Tensor& new_cell, const at::Tensor& input_gate,
                                          const at::Tensor& output_gate,
                                          const at::Tensor& candidate_cell, const at::Tensor& X,
                                          const at::Tensor& gate_weights,
                                          const at::Tensor& weights);

}  // namespace lltm_bindings
