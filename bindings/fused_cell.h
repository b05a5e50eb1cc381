// The forward cell as one kernel, on a GPU, for sizes that are too small for three.
#pragma once

#include "cell.h"
#include "checks.h"

namespace lltm_bindings {

// Whether a GPU computes (batch_size, width) times (width, state_size) for each gate faster inside
// the pointwise kernel than before it.
bool fits_fused_product(const at::Tensor& like, int64_t batch_size, int64_t state_size,
                        int64_t width);

// The same for the whole cell.
bool fits_fused_cell(const at::Tensor& input, const CellSizes& sizes);

// Whether a GPU computes all gradients of the products faster in one launch.
bool fits_fused_gradients(const at::Tensor& input, const CellSizes& sizes);

// On checked tensors that fit -> new_h, new_cell, and gates unless they are not wanted.
std::tuple<at::Tensor, at::Tensor, at::Tensor> run_fused_cell(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
    const at::Tensor& old_h, const at::Tensor& old_cell, const CellSizes& sizes, bool wants_gates);

}  // namespace lltm_bindings
