// The cell's products with its weights, whose columns are those of [old_h, input].
#pragma once

#include <ATen/core/Tensor.h>

#include "cell.h"
#include "checks.h"

namespace lltm_bindings {

struct ProductGradients {
  at::Tensor d_input, d_weights, d_bias, d_old_h;  // undefined: not wanted
};

// gates = [old_h, input] @ weights^T, (batch_size, 3 * state_size); the core adds the bias.
at::Tensor multiply_gates(const at::Tensor& input, const at::Tensor& weights,
                          const at::Tensor& old_h, const CellSizes& sizes);

// Those gradients that are wanted: d_old_h and d_input, the two column blocks of d_gates @ weights;
// d_weights = d_gates^T @ [old_h, input]; d_bias, the sum of d_gates over the batch, of the shape
// of `bias`. An undefined bias has no gradient. `mask` is that of the cell.
ProductGradients multiply_gradients(const at::Tensor& d_gates, const at::Tensor& input,
                                    const at::Tensor& weights, const at::Tensor& bias,
                                    const at::Tensor& old_h, const CellSizes& sizes,
                                    const GradientMask& mask);

}  // namespace lltm_bindings
