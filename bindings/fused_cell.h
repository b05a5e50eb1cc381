// The forward cell as one kernel, on a GPU, for sizes that are too small for three.
#pragma once

#include "cell.h"
#include "checks.h"

namespace lltm_bindings {

// Whether one kernel is faster than two products and a pointwise kernel.
bool fits_fused_cell(const at::Tensor& input, const CellSizes& sizes);

// On checked tensors that fit -> new_h, new_cell, and gates unless they are not wanted.
std::tuple<at::Tensor, at::Tensor, at::Tensor> run_fused_cell(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
    const at::Tensor& old_h, const at::Tensor& old_cell, const CellSizes& sizes, bool wants_gates);

}  // namespace lltm_bindings
