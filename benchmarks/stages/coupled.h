// What a coupled CUDA extension's two files share: functions of tensors, so that nvcc, too, has to
// read torch's headers.
#pragma once

#include <torch/extension.h>

#include <vector>

// sums [B, 3, H], old_cell [B, H] -> new_h and new_cell [B, H], gates [B, 3, H]; all contiguous
std::vector<at::Tensor> pointwise_forward(const at::Tensor& sums, const at::Tensor& old_cell);

// grad_h, grad_cell and new_cell [B, H], gates [B, 3, H] -> d_sums [B, 3, H], d_old_cell [B, H]
std::vector<at::Tensor> pointwise_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                           const at::Tensor& new_cell, const at::Tensor& gates);
