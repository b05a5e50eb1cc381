// The cell under torch.autocast, by the rules of nn.LSTMCell.
#pragma once

#include "cell.h"

namespace lltm_bindings {

// On a GPU everything is cast to autocast's dtype, the state too.
std::tuple<at::Tensor, at::Tensor> cell_autocast_cuda(const at::Tensor& input,
                                                      const at::Tensor& weights,
                                                      const OptionalTensor& bias,
                                                      const at::Tensor& old_h,
                                                      const at::Tensor& old_cell);

// On a CPU only what is multiplied is cast; the state keeps its dtype.
std::tuple<at::Tensor, at::Tensor> cell_autocast_cpu(const at::Tensor& input,
                                                     const at::Tensor& weights,
                                                     const OptionalTensor& bias,
                                                     const at::Tensor& old_h,
                                                     const at::Tensor& old_cell);

}  // namespace lltm_bindings
