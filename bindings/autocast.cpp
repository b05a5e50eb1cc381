#include "autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <initializer_list>

#include "formula.h"
#include "operators.h"
#include "sequence_operators.h"

namespace lltm_bindings {
namespace {

at::ScalarType autocast_dtype(at::DeviceType device) {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  return at::autocast::get_autocast_dtype(device);
#else
  return device == at::kCUDA ? at::autocast::get_autocast_gpu_dtype()
                             : at::autocast::get_autocast_cpu_dtype();
#endif
}

// Casts what autocast casts (float32 and narrower), weights once a region. float64 stays, and with
// it everything: it fits nothing else, and the error is to name what was given.
struct Cast {
  Cast(at::DeviceType device, std::initializer_list<at::Tensor> tensors)
      : device(device), dtype(autocast_dtype(device)), keeps(false) {
    for (const at::Tensor& tensor : tensors) keeps |= tensor.scalar_type() == at::kDouble;
  }
  at::Tensor operator()(const at::Tensor& tensor) const {
    return keeps ? tensor : at::autocast::cached_cast(dtype, tensor, device);
  }
  OptionalTensor operator()(const OptionalTensor& tensor) const {
    return tensor.has_value() ? OptionalTensor((*this)(*tensor)) : tensor;
  }
  at::DeviceType device;
  at::ScalarType dtype;
  bool keeps;
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> cell_autocast_cuda(const at::Tensor& input,
                                                      const at::Tensor& weights,
                                                      const OptionalTensor& bias,
                                                      const at::Tensor& old_h,
                                                      const at::Tensor& old_cell) {
  static const auto op = find_operator<decltype(cell)>("lltm_decoupled::cell");
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  const Cast cast(at::kCUDA, {input, weights, bias.value_or(at::Tensor()), old_h, old_cell});
  return op.call(cast(input), cast(weights), cast(bias), cast(old_h), cast(old_cell));
}

std::tuple<at::Tensor, at::Tensor> cell_autocast_cpu(const at::Tensor& input,
                                                     const at::Tensor& weights,
                                                     const OptionalTensor& bias,
                                                     const at::Tensor& old_h,
                                                     const at::Tensor& old_cell) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  const Cast cast(at::kCPU, {input, weights, bias.value_or(at::Tensor()), old_h});
  const at::Tensor narrow = cast(input);
  if (old_cell.scalar_type() != narrow.scalar_type()) {
    return cell_mixed_formula(narrow, cast(weights), cast(bias), cast(old_h), old_cell);
  }
  static const auto op = find_operator<decltype(cell)>("lltm_decoupled::cell");
  return op.call(narrow, cast(weights), cast(bias), cast(old_h), old_cell);
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> cast_sequence(
    at::DeviceType device, const at::Tensor& input, const at::Tensor& weights,
    const OptionalTensor& bias, const OptionalTensor& h0, const OptionalTensor& c0,
    const OptionalTensor& batch_sizes, bool reverse, bool recompute,
    const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c) {
  static const auto op = find_operator<decltype(sequence)>("lltm_decoupled::sequence");
  const Cast cast(device, {input, weights, tensor_or_undefined(bias), tensor_or_undefined(h0),
                           tensor_or_undefined(c0)});
  return op.call(cast(input), cast(weights), cast(bias), cast(h0), cast(c0), batch_sizes, reverse,
                 recompute, zoneout_h, zoneout_c);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autocast_cuda(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  return cast_sequence(at::kCUDA, input, weights, bias, h0, c0, batch_sizes, reverse, recompute,
                       zoneout_h, zoneout_c);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence_autocast_cpu(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h,
    const OptionalTensor& zoneout_c) {
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  return cast_sequence(at::kCPU, input, weights, bias, h0, c0, batch_sizes, reverse, recompute,
                       zoneout_h, zoneout_c);
}

}  // namespace lltm_bindings
