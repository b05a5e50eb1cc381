// The cell as differentiable ATen operations: what backward of backward differentiates, and what
// runs on devices for which the core has no kernel. The public readable form of the same formula is
// lltm_decoupled/reference.py.
#pragma once

#include "cell.h"

namespace lltm_bindings {

std::tuple<at::Tensor, at::Tensor> cell_formula(const at::Tensor& input, const at::Tensor& weights,
                                                const OptionalTensor& bias, const at::Tensor& old_h,
                                                const at::Tensor& old_cell);

std::tuple<at::Tensor, at::Tensor, at::Tensor> cell_forward_formula(const at::Tensor& input,
                                                                    const at::Tensor& weights,
                                                                    const OptionalTensor& bias,
                                                                    const at::Tensor& old_h,
                                                                    const at::Tensor& old_cell);

// With old_cell of a wider dtype than the rest: the products are computed in the narrow one, the
// state in the wide one.
std::tuple<at::Tensor, at::Tensor> cell_mixed_formula(const at::Tensor& input,
                                                      const at::Tensor& weights,
                                                      const OptionalTensor& bias,
                                                      const at::Tensor& old_h,
                                                      const at::Tensor& old_cell);

// `gates` only fixes the schema: they are computed again, so that derivatives flow through them.
CellGradients cell_backward_formula(const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
                                    const at::Tensor& input, const at::Tensor& weights,
                                    const OptionalTensor& bias, const at::Tensor& old_h,
                                    const at::Tensor& new_cell, const at::Tensor& gates,
                                    GradientMask mask);

}  // namespace lltm_bindings
