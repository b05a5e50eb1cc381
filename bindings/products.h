// The cell's products with its weights, whose columns are those of [old_h, input].
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "checks.h"

namespace lltm_bindings {

// gates = [old_h, input] @ weights^T, (batch_size, 3 * state_size); the core adds the bias.
at::Tensor multiply_gates(const at::Tensor& input, const at::Tensor& weights,
                          const at::Tensor& old_h, const CellSizes& sizes);

// d_weights = d_gates^T @ [old_h, input]
at::Tensor multiply_d_weights(const at::Tensor& d_gates, const at::Tensor& input,
                              const at::Tensor& old_h, const CellSizes& sizes);

// d_old_h and d_input, those that are wanted: the two column blocks of d_gates @ weights.
std::tuple<at::Tensor, at::Tensor> multiply_d_inputs(const at::Tensor& d_gates,
                                                     const at::Tensor& weights, bool wants_d_old_h,
                                                     bool wants_d_input, const CellSizes& sizes);

}  // namespace lltm_bindings
