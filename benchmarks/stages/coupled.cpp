// The C++ half of the third and fourth steps: checks, and the products through ATen. All that is
// pointwise is one kernel, in pointers.cu or accessors.cu: an extension is built with one of them.
#include "coupled.h"

#include <c10/cuda/CUDAGuard.h>

namespace {

void check(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.is_cuda(), name, " must be on a GPU");
  TORCH_CHECK(tensor.is_contiguous(), name, " must be contiguous");
}

// input [B, I], weights [3H, H + I], bias [3H], old_h and old_cell [B, H].
// Returns new_h and new_cell [B, H], gates [B, 3, H], joined [B, H + I].
std::vector<at::Tensor> forward(const at::Tensor& input, const at::Tensor& weights,
                                const at::Tensor& bias, const at::Tensor& old_h,
                                const at::Tensor& old_cell) {
  check(input, "input");
  check(weights, "weights");
  check(bias, "bias");
  check(old_h, "old_h");
  check(old_cell, "old_cell");
  const c10::cuda::CUDAGuard guard(input.device());
  const at::Tensor joined = at::cat({old_h, input}, 1);
  const at::Tensor sums = at::addmm(bias, joined, weights.t());
  std::vector<at::Tensor> results =
      pointwise_forward(sums.view({old_cell.size(0), 3, old_cell.size(1)}), old_cell);
  results.push_back(joined);
  return results;
}

// The gradients of forward's five arguments, in their order.
std::vector<at::Tensor> backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                 const at::Tensor& new_cell, const at::Tensor& gates,
                                 const at::Tensor& joined, const at::Tensor& weights) {
  check(grad_h, "grad_h");
  check(grad_cell, "grad_cell");
  const c10::cuda::CUDAGuard guard(grad_h.device());
  const std::vector<at::Tensor> results = pointwise_backward(grad_h, grad_cell, new_cell, gates);
  const at::Tensor d_sums = results[0].flatten(1);

  const at::Tensor d_joined = d_sums.mm(weights);
  const int64_t state_size = new_cell.size(1);
  const at::Tensor d_old_h = d_joined.narrow(1, 0, state_size);
  const at::Tensor d_input = d_joined.narrow(1, state_size, joined.size(1) - state_size);
  return {d_input, d_sums.t().mm(joined), d_sums.sum(0), d_old_h, results[1]};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("forward", &forward);
  module.def("backward", &backward);
}
