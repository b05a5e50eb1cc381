// The sequence under other dispatch keys than those of its devices.
#pragma once

#include "sequence.h"

namespace lltm_bindings {

// By ATen's own operations alone: differentiable any number of times, on any device.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_formula(const SequenceArguments& arguments);

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_composite(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autograd(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

// As autocast treats nn.LSTM: every tensor is cast.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autocast_cuda(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autocast_cpu(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

}  // namespace lltm_bindings
