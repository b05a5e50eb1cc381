// The cell under autograd.
#pragma once

#include "cell.h"

namespace lltm_bindings {

std::tuple<at::Tensor, at::Tensor> cell_autograd(const at::Tensor& input, const at::Tensor& weights,
                                                 const OptionalTensor& bias,
                                                 const at::Tensor& old_h,
                                                 const at::Tensor& old_cell);

}  // namespace lltm_bindings
