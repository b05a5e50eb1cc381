#include "tutorial.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "checks.h"
#include "dispatch.h"
#include "matrix.h"

namespace lltm_bindings {

std::vector<at::Tensor> tutorial_forward(const at::Tensor& input, const at::Tensor& weights,
                                         const OptionalTensor& bias, const at::Tensor& old_h,
                                         const at::Tensor& old_cell) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  const CellSizes sizes = check_cell(input, weights, bias_or_none, old_h, old_cell);
  const DeviceScope scope(input);
  const at::Tensor X = at::cat({old_h, input}, 1);
  at::Tensor gate_weights = at::empty({sizes.batch_size, 3 * sizes.state_size}, input.options());
  multiply(gate_weights, X, weights.t(), /*adds=*/false);
  if (bias_or_none.defined()) gate_weights.add_(bias_or_none);
  Activations save;
  save.input_gate = at::empty({sizes.batch_size, sizes.state_size}, input.options());
  save.output_gate = at::empty({sizes.batch_size, sizes.state_size}, input.options());
  save.candidate_cell = at::empty({sizes.batch_size, sizes.state_size}, input.options());
  auto state = run_cell_forward(gate_weights, at::Tensor(), old_cell, save);
  return {std::get<0>(state), std::get<1>(state),  save.input_gate,
          save.output_gate,   save.candidate_cell, X,
          gate_weights};
}

std::vector<at::Tensor> tutorial_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                          const at::Tensor& new_cell, const at::Tensor& input_gate,
                                          const at::Tensor& output_gate,
                                          const at::Tensor& candidate_cell, const at::Tensor& X,
                                          const at::Tensor& gate_weights,
                                          const at::Tensor& weights) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  check_matrix(X, "X", "(batch_size, state_size + input_features)");
  check_matrix(weights, "weights", "(3 * state_size, state_size + input_features)");
  const int64_t B = X.size(0);
  const int64_t H = weights.size(0) / 3;
  const int64_t I = X.size(1) - H;
  const int64_t weights_shape[] = {3 * H, X.size(1)};
  const int64_t state_shape[] = {B, H};
  const int64_t gates_shape[] = {B, 3 * H};
  const char* state_meaning = "(batch_size, state_size)";
  TORCH_CHECK(I >= 0, "lltm_decoupled: expected X of shape (batch_size, state_size + ",
              "input_features) with state_size = ", shown(H), " as weights has, got ",
              shown(X.sizes()));
  check_tensor(weights, "weights", weights_shape, "(3 * state_size, state_size + input_features)",
               X, "X");
  check_tensor(grad_h, "grad_h", state_shape, state_meaning, X, "X");
  check_tensor(grad_cell, "grad_cell", state_shape, state_meaning, X, "X");
  check_tensor(new_cell, "new_cell", state_shape, state_meaning, X, "X");
  check_tensor(input_gate, "input_gate", state_shape, state_meaning, X, "X");
  check_tensor(output_gate, "output_gate", state_shape, state_meaning, X, "X");
  check_tensor(candidate_cell, "candidate_cell", state_shape, state_meaning, X, "X");
  check_tensor(gate_weights, "gate_weights", gates_shape, "(batch_size, 3 * state_size)", X, "X");

  const DeviceScope scope(X);
  auto pointwise = run_cell_backward(grad_h, grad_cell, gate_weights, at::Tensor(), new_cell);
  const at::Tensor& d_gates = std::get<0>(pointwise);
  const at::Tensor d_old_h = at::empty({B, H}, X.options());
  const at::Tensor d_input = at::empty({B, I}, X.options());
  const at::Tensor d_weights = at::empty({3 * H, H + I}, X.options());
  multiply(d_old_h, d_gates, weights.narrow(1, 0, H), /*adds=*/false);
  multiply(d_input, d_gates, weights.narrow(1, H, I), /*adds=*/false);
  multiply(d_weights, d_gates.t(), X, /*adds=*/false);
  return {d_old_h, d_input, d_weights, d_gates.sum(0, /*keepdim=*/true), std::get<1>(pointwise),
          d_gates};
}

}  // namespace lltm_bindings
