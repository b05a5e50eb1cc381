// The second step of the ladder: the formula through ATen's C++ interface, and its gradient by
// hand. It saves what Python and autograd cost in each operation. Each is still a kernel of its
// own.
// B, I, H: batch_size, input_features, state_size.
//
// These two headers are half of torch/extension.h, and take half as long to read.
#include <ATen/ATen.h>
#include <torch/csrc/utils/pybind.h>

#include <vector>

namespace {

// input [B, I], weights [3H, H + I], bias [3H], old_h and old_cell [B, H].
// Returns new_h and new_cell [B, H], and what backward needs: the gates [B, H], joined [B, H + I].
std::vector<at::Tensor> forward(const at::Tensor& input, const at::Tensor& weights,
                                const at::Tensor& bias, const at::Tensor& old_h,
                                const at::Tensor& old_cell) {
  const at::Tensor joined = at::cat({old_h, input}, 1);
  const std::vector<at::Tensor> sums = at::addmm(bias, joined, weights.t()).chunk(3, 1);
  const at::Tensor input_gate = at::sigmoid(sums[0]);
  const at::Tensor output_gate = at::sigmoid(sums[1]);
  const at::Tensor candidate = at::elu(sums[2]);
  const at::Tensor new_cell = old_cell + candidate * input_gate;
  const at::Tensor new_h = at::tanh(new_cell) * output_gate;
  return {new_h, new_cell, input_gate, output_gate, candidate, joined};
}

// The gradients of forward's five arguments, in their order.
std::vector<at::Tensor> backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                 const at::Tensor& new_cell, const at::Tensor& input_gate,
                                 const at::Tensor& output_gate, const at::Tensor& candidate,
                                 const at::Tensor& joined, const at::Tensor& weights) {
  const at::Tensor tanh_cell = at::tanh(new_cell);
  const at::Tensor d_cell = grad_cell + grad_h * output_gate * (1 - tanh_cell * tanh_cell);
  const at::Tensor d_input_gate = d_cell * candidate * input_gate * (1 - input_gate);
  const at::Tensor d_output_gate = grad_h * tanh_cell * output_gate * (1 - output_gate);
  // ELU grows by 1 above zero, and by its own value plus 1 below.
  const at::Tensor d_candidate = d_cell * input_gate * (at::clamp_max(candidate, 0) + 1);
  const at::Tensor d_sums = at::cat({d_input_gate, d_output_gate, d_candidate}, 1);

  const at::Tensor d_joined = d_sums.mm(weights);
  const int64_t state_size = new_cell.size(1);
  const at::Tensor d_old_h = d_joined.narrow(1, 0, state_size);
  const at::Tensor d_input = d_joined.narrow(1, state_size, joined.size(1) - state_size);
  return {d_input, d_sums.t().mm(joined), d_sums.sum(0), d_old_h, d_cell};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("forward", &forward);
  module.def("backward", &backward);
}
