#include "fused_cell.h"

#include <ATen/ops/empty.h>

#include "cublas.h"
#include "dispatch.h"
#include "layout.h"

namespace lltm_bindings {

// Up to how many products a gate the fused kernel was faster than cuBLAS and a pointwise kernel in
// a CUDA graph on an H100; half types and float64 have tensor cores on the other side.
static int64_t most_products(at::ScalarType dtype) {
  if (dtype == at::kDouble) return 1300000;
  return dtype == at::kFloat ? 4500000 : 3000000;
}

bool fits_fused_product(const at::Tensor& like, int64_t batch_size, int64_t state_size,
                        int64_t width) {
  if (!kWithCuda || !like.is_cuda() || batch_size > 64) return false;
  if (width > 4096) return false;  // also keeps the product below from overflowing
  // The kernel works on whole tiles of 4 rows.
  const int64_t rows = (batch_size + 3) / 4 * 4;
  return rows * state_size * width <= most_products(like.scalar_type());
}

bool fits_fused_cell(const at::Tensor& input, const CellSizes& sizes) {
  return fits_fused_product(input, sizes.batch_size, sizes.state_size,
                            sizes.state_size + sizes.input_features);
}

// The same for the gradients; measured on an H200 with sizes from (1, 32, 64) to (256, 128, 128)
// and (16, 1024, 1024).
bool fits_fused_gradients(const at::Tensor& input, const CellSizes& sizes) {
  if (!kWithCuda || !input.is_cuda()) return false;
  const bool is_full_float = input.scalar_type() == at::kFloat && !allows_tf32(input);
  if (sizes.batch_size > (is_full_float ? 256 : 128)) return false;
  const int64_t width = sizes.state_size + sizes.input_features;
  if (width > 4096) return false;  // also keeps the product below from overflowing
  const int64_t products = sizes.batch_size * sizes.state_size * width;
  if (is_full_float) return products <= 17000000;
  if (input.scalar_type() != at::kDouble) return products <= 8400000;
  return products <= 8400000 && sizes.state_size * width <= 1000000;  // of 8 bytes each
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> run_fused_cell(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
    const at::Tensor& old_h, const at::Tensor& old_cell, const CellSizes& sizes, bool wants_gates) {
  const int64_t B = sizes.batch_size;
  const int64_t H = sizes.state_size;
  const at::Tensor dense_input = dense(input);
  const at::Tensor dense_weights = dense(weights);
  const at::Tensor dense_bias = dense(bias);
  const at::Tensor dense_old_h = dense(old_h);
  const at::Tensor dense_old_cell = dense(old_cell);
  at::Tensor new_h = at::empty({B, H}, input.options());
  at::Tensor new_cell = at::empty({B, H}, input.options());
  at::Tensor gates;
  if (wants_gates) gates = at::empty({B, 3 * H}, input.options());
  with_core(input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    check_status(core.cell_fused_forward(B, H, sizes.input_features, C::pointer(dense_input, 0),
                                         C::pointer(dense_weights, 0), C::pointer(dense_bias, 0),
                                         C::pointer(dense_old_h, 0), C::pointer(dense_old_cell, 0),
                                         C::pointer(new_h, 0), C::pointer(new_cell, 0),
                                         C::pointer(gates, 0), stream),
                 "cell_fused_forward");
  });
  return std::make_tuple(new_h, new_cell, gates);
}

}  // namespace lltm_bindings
