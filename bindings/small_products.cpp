#include "small_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "dispatch.h"
#include "layout.h"

namespace lltm_bindings {

typedef Core<float> C;

// Weights below which a second thread of ATen's does not make up for the core's single one.
const int64_t kWeightsPerThread = 32768;

bool fits_small_products(const at::Tensor& input, const at::Tensor& weights,
                         const CellSizes& sizes) {
  return input.device().is_cpu() && input.scalar_type() == at::kFloat && sizes.batch_size <= 16 &&
         weights.is_contiguous() &&
         (at::get_num_threads() == 1 || weights.numel() <= kWeightsPerThread);
}

at::Tensor run_gate_products(const at::Tensor& input, const at::Tensor& weights,
                             const at::Tensor& old_h, const CellSizes& sizes) {
  const at::Tensor dense_input = dense(input);
  const at::Tensor dense_weights = dense(weights);
  const at::Tensor dense_old_h = dense(old_h);
  at::Tensor gates = at::empty({sizes.batch_size, 3 * sizes.state_size}, input.options());
  check_status(
      lltm_gate_products_cpu_float(sizes.batch_size, sizes.state_size, sizes.input_features,
                                   C::pointer(dense_input, 0), C::pointer(dense_weights, 0),
                                   C::pointer(dense_old_h, 0), C::pointer(gates, 0)),
      "gate_products");
  return gates;
}

void run_gradient_products(const at::Tensor& d_gates, const at::Tensor& input,
                           const at::Tensor& weights, const at::Tensor& old_h,
                           const CellSizes& sizes, const ProductGradients& gradients) {
  const at::Tensor dense_input = dense(input);
  const at::Tensor dense_weights = dense(weights);
  const at::Tensor dense_old_h = dense(old_h);
  check_status(
      lltm_gradient_products_cpu_float(
          sizes.batch_size, sizes.state_size, sizes.input_features, C::pointer(d_gates, 0),
          C::pointer(dense_input, 0), C::pointer(dense_weights, 0), C::pointer(dense_old_h, 0),
          C::pointer(gradients.d_input, 0), C::pointer(gradients.d_weights, 0),
          C::pointer(gradients.d_bias, 0), C::pointer(gradients.d_old_h, 0)),
      "gradient_products");
}

}  // namespace lltm_bindings
