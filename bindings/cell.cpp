#include "cell.h"

#include <ATen/ops/empty.h>

#include "checks.h"
#include "dispatch.h"
#include "fused_cell.h"
#include "layout.h"
#include "products.h"
#include "rows.h"

namespace lltm_bindings {
std::tuple<at::Tensor, at::Tensor> run_cell_forward(const at::Tensor& gates, const at::Tensor& bias,
                                                    const at::Tensor& old_cell,
                                                    const Activations& save) {
  const int64_t B = old_cell.size(0);
  const int64_t H = old_cell.size(1);
  const at::Tensor dense_gates = dense(gates);
  const at::Tensor dense_bias = dense(bias);
  const at::Tensor dense_old_cell = dense(old_cell);
  at::Tensor new_h = at::empty({B, H}, gates.options());
  at::Tensor new_cell = at::empty({B, H}, gates.options());
  with_core(gates, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    for_rows(gates, B, H, [&](int64_t row, int64_t rows) {
      check_status(
          core.cell_forward(rows, H, C::pointer(dense_gates, row), C::pointer(dense_bias, 0),
                            C::pointer(dense_old_cell, row), C::pointer(new_h, row),
                            C::pointer(new_cell, row), C::pointer(save.input_gate, row),
                            C::pointer(save.output_gate, row), C::pointer(save.candidate_cell, row),
                            stream),
          "cell_forward");
    });
  });
  return std::make_tuple(new_h, new_cell);
}

std::tuple<at::Tensor, at::Tensor> run_cell_backward(const at::Tensor& grad_h,
                                                     const at::Tensor& grad_cell,
                                                     const at::Tensor& gates,
                                                     const at::Tensor& bias,
                                                     const at::Tensor& new_cell) {
  const int64_t B = new_cell.size(0);
  const int64_t H = new_cell.size(1);
  const at::Tensor dense_grad_h = dense(grad_h);
  const at::Tensor dense_grad_cell = dense(grad_cell);
  const at::Tensor dense_gates = dense(gates);
  const at::Tensor dense_bias = dense(bias);
  const at::Tensor dense_new_cell = dense(new_cell);
  at::Tensor d_gates = at::empty({B, 3 * H}, gates.options());
  at::Tensor d_old_cell = at::empty({B, H}, gates.options());
  with_core(gates, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    for_rows(gates, B, H, [&](int64_t row, int64_t rows) {
      check_status(
          core.cell_backward(rows, H, C::pointer(dense_grad_h, row),
                             C::pointer(dense_grad_cell, row), C::pointer(dense_gates, row),
                             C::pointer(dense_bias, 0), C::pointer(dense_new_cell, row),
                             C::pointer(d_gates, row), C::pointer(d_old_cell, row), stream),
          "cell_backward");
    });
  });
  return std::make_tuple(d_gates, d_old_cell);
}

static std::tuple<at::Tensor, at::Tensor, at::Tensor> forward(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const at::Tensor& old_h, const at::Tensor& old_cell, bool wants_gates) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  const CellSizes sizes = check_cell(input, weights, bias_or_none, old_h, old_cell);
  const DeviceScope scope(input);
  if (fits_fused_cell(input, sizes)) {
    return run_fused_cell(input, weights, bias_or_none, old_h, old_cell, sizes, wants_gates);
  }
  at::Tensor gates = multiply_gates(input, weights, old_h, sizes);
  auto state = run_cell_forward(gates, bias_or_none, old_cell, Activations());
  return std::make_tuple(std::get<0>(state), std::get<1>(state), gates);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> cell_forward(const at::Tensor& input,
                                                            const at::Tensor& weights,
                                                            const OptionalTensor& bias,
                                                            const at::Tensor& old_h,
                                                            const at::Tensor& old_cell) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return forward(input, weights, bias, old_h, old_cell, /*wants_gates=*/true);
}

std::tuple<at::Tensor, at::Tensor> cell(const at::Tensor& input, const at::Tensor& weights,
                                        const OptionalTensor& bias, const at::Tensor& old_h,
                                        const at::Tensor& old_cell) {
  auto outputs = forward(input, weights, bias, old_h, old_cell, /*wants_gates=*/false);
  return std::make_tuple(std::get<0>(outputs), std::get<1>(outputs));
}

CellGradients cell_backward(const OptionalTensor& grad_h, const OptionalTensor& grad_cell,
                            const at::Tensor& input, const at::Tensor& weights,
                            const OptionalTensor& bias, const at::Tensor& old_h,
                            const at::Tensor& new_cell, const at::Tensor& gates,
                            GradientMask mask) {
  const at::Tensor bias_or_none = tensor_or_undefined(bias);
  const CellSizes sizes = check_cell(input, weights, bias_or_none, old_h, new_cell);
  const int64_t state_shape[] = {sizes.batch_size, sizes.state_size};
  const int64_t gates_shape[] = {sizes.batch_size, 3 * sizes.state_size};
  check_tensor(gates, "gates", gates_shape, "(batch_size, 3 * state_size)", input, "input");
  const at::Tensor d_new_h = tensor_or_undefined(grad_h);
  const at::Tensor d_new_cell = tensor_or_undefined(grad_cell);
  if (d_new_h.defined()) {
    check_tensor(d_new_h, "grad_h", state_shape, "(batch_size, state_size)", input, "input");
  }
  if (d_new_cell.defined()) {
    check_tensor(d_new_cell, "grad_cell", state_shape, "(batch_size, state_size)", input, "input");
  }

  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const DeviceScope scope(input);
  auto pointwise = run_cell_backward(d_new_h, d_new_cell, gates, bias_or_none, new_cell);
  const at::Tensor& d_gates = std::get<0>(pointwise);
  const ProductGradients products =
      multiply_gradients(d_gates, input, weights, bias_or_none, old_h, sizes, mask);
  const at::Tensor d_old_cell = mask[4] ? std::get<1>(pointwise) : at::Tensor();
  return std::make_tuple(products.d_input, products.d_weights, products.d_bias, products.d_old_h,
                         d_old_cell);
}

}  // namespace lltm_bindings
