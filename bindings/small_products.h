// The cell's products by the core's own kernels, on a CPU, for few rows: nothing is concatenated,
// and one pass over the weights gives all their gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include "checks.h"

namespace lltm_bindings {

struct ProductGradients {
  at::Tensor d_input, d_weights, d_bias, d_old_h;  // undefined: not wanted
};

// Whether the core is faster than ATen's products, copies included.
bool fits_small_products(const at::Tensor& input, const at::Tensor& weights,
                         const CellSizes& sizes);

// What multiply_gates and multiply_gradients of products.h do, on tensors that fit.
at::Tensor run_gate_products(const at::Tensor& input, const at::Tensor& weights,
                             const at::Tensor& old_h, const CellSizes& sizes);
void run_gradient_products(const at::Tensor& d_gates, const at::Tensor& input,
                           const at::Tensor& weights, const at::Tensor& old_h,
                           const CellSizes& sizes, const ProductGradients& gradients);

}  // namespace lltm_bindings
