#include "small_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "dispatch.h"
#include "layout.h"

namespace lltm_bindings {

typedef Core<float> C;

// Up to how many rows one thread of the core is faster than one of ATen's, the latter's copies
// included, for the forward and the backward products alike; measured with vectors of 64 and 32
// bytes on a Xeon. Without either, MKL has the wider vectors.
static int64_t most_rows(int64_t weights) {
  static const int64_t vector_bytes = lltm_vector_bytes();
  if (vector_bytes < 32) return 0;
  if (weights <= 128 * 1024) return vector_bytes / 2;
  return weights <= 512 * 1024 ? vector_bytes / 4 : vector_bytes / 8;
}

bool fits_small_products(const at::Tensor& input, const at::Tensor& weights,
                         const CellSizes& sizes) {
  if (!input.device().is_cpu() || input.scalar_type() != at::kFloat) return false;
  if (!weights.is_contiguous() || sizes.batch_size > most_rows(weights.numel())) return false;
  // Several threads of ATen's share the work, which the core does in the calling one. Two are
  // slower than it below this; that more are in proportion is a guess.
  const int64_t threads = at::get_num_threads();
  return threads == 1 || weights.numel() <= 256 * 1024 / threads;
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
