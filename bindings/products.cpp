#include "products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <tuple>

#include "dispatch.h"
#include "fused_cell.h"
#include "layout.h"
#include "matrix.h"

namespace lltm_bindings {
namespace {

// For few rows on a CPU the core multiplies by its own kernels: nothing is concatenated, and one
// pass over the weights gives all their gradients.

// Up to how many rows these kernels are faster than one thread of ATen's, the latter's copies
// included, for the forward and the backward products alike; measured with vectors of 64 and 32
// bytes on a Xeon. Without either, MKL has the wider vectors.
int64_t most_rows(int64_t weights) {
  static const int64_t vector_bytes = lltm_vector_bytes();
  if (vector_bytes < 32) return 0;
  if (weights <= 128 * 1024) return vector_bytes / 2;
  return weights <= 512 * 1024 ? vector_bytes / 4 : vector_bytes / 8;
}

// The same where `multiply` is the core's own; measured on Zen 5.
const int64_t kMostRowsForward = 128;
int64_t most_rows_backward(const at::Tensor& weights) {
  return weights.numel() <= 1024 * 1024 ? 64 : 32;
}

// Several threads of ATen's share the work, which these kernels do in the calling one. Two are
// slower than it below this; that more are in proportion is a guess.
bool outruns_threads(const at::Tensor& weights, int64_t threads) {
  return threads <= 1 || weights.numel() <= 256 * 1024 / threads;
}

// Whether they are the fastest, the copies of others included.
bool fits_small_products(const at::Tensor& input, const at::Tensor& weights, const CellSizes& sizes,
                         int64_t most_rows_beside_multiply) {
  if (!input.device().is_cpu() || input.scalar_type() != at::kFloat) return false;
  if (!weights.is_contiguous()) return false;
  const int64_t threads = at::get_num_threads();
  if (!outruns_aten(input)) {
    return sizes.batch_size <= most_rows(weights.numel()) && outruns_threads(weights, threads);
  }
  if (threads == 1) return sizes.batch_size <= most_rows_beside_multiply;
  // `multiply` shares its rows out, and leaves few to ATen, whose threads do half as much each.
  return sizes.batch_size < kRowsWorthPacking && outruns_threads(weights, threads / 2);
}

at::Tensor run_gate_products(const at::Tensor& input, const at::Tensor& weights,
                             const at::Tensor& old_h, const CellSizes& sizes) {
  typedef Core<float> C;
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

template <typename C, typename Function>
void run_gradient_products(Function function, CUstream_st* stream, const at::Tensor& d_gates,
                           const at::Tensor& input, const at::Tensor& weights,
                           const at::Tensor& old_h, const CellSizes& sizes,
                           const ProductGradients& gradients) {
  const at::Tensor dense_input = dense(input);
  const at::Tensor dense_weights = dense(weights);
  const at::Tensor dense_old_h = dense(old_h);
  check_status(
      function(sizes.batch_size, sizes.state_size, sizes.input_features, C::pointer(d_gates, 0),
               C::pointer(dense_input, 0), C::pointer(dense_weights, 0), C::pointer(dense_old_h, 0),
               C::pointer(gradients.d_input, 0), C::pointer(gradients.d_weights, 0),
               C::pointer(gradients.d_bias, 0), C::pointer(gradients.d_old_h, 0), stream),
      "gradient_products");
}

// A GPU takes the two column blocks of the weights one by one and never makes the concatenation.
// On a CPU one product over all columns is 1.1 to 1.5 times faster than two, and copying a small
// matrix is cheap.

// Whether a CPU computes gates^T = weights @ [old_h, input]^T faster, both copies included. For few
// rows and weights beyond the second-level cache MKL does, by 1.1 to 3.5 times: it reads rows of
// the weights as they lie, where the other order has it walk across them. On AMD's processors its
// kernels are others: up to 1.3 times slower in this order.
bool prefers_transposed_gates(const at::Tensor& weights, int64_t batch_size) {
  static const bool is_amd = lltm_processor() >= LLTM_PROCESSOR_AMD;
  return !is_amd && !outruns_aten(weights) && batch_size >= 8 && batch_size <= 128 &&
         weights.numel() >= 128 * 1024 &&
         weights.element_size() >= 4;  // products of half types are not MKL's
}

}  // namespace

at::Tensor multiply_gates(const at::Tensor& input, const at::Tensor& weights,
                          const at::Tensor& old_h, const CellSizes& sizes) {
  if (fits_small_products(input, weights, sizes, kMostRowsForward)) {
    return run_gate_products(input, weights, old_h, sizes);
  }
  if (!input.is_cuda()) {
    if (prefers_transposed_gates(weights, sizes.batch_size)) {
      return transpose(at::mm(weights, join_columns_transposed(old_h, input)));
    }
    at::Tensor gates = at::empty({sizes.batch_size, 3 * sizes.state_size}, input.options());
    multiply(gates, join_columns(old_h, input), weights.t(), /*adds=*/false);
    return gates;
  }
  // Half types take one product on a GPU too: a sum of two would be rounded twice.
  if (input.element_size() == 2) return at::mm(at::cat({old_h, input}, 1), weights.t());
  const int64_t H = sizes.state_size;
  at::Tensor gates = at::mm(input, weights.narrow(1, H, sizes.input_features).t());
  return gates.addmm_(old_h, weights.narrow(1, 0, H).t());
}

// d_weights = d_gates^T @ [old_h, input]
static at::Tensor multiply_d_weights(const at::Tensor& d_gates, const at::Tensor& input,
                                     const at::Tensor& old_h, const CellSizes& sizes) {
  const at::Tensor d_gates_t = d_gates.t();
  const int64_t H = sizes.state_size;
  at::Tensor d_weights = at::empty({3 * H, H + sizes.input_features}, input.options());
  if (!input.is_cuda()) {
    multiply(d_weights, d_gates_t, join_columns(old_h, input), /*adds=*/false);
    return d_weights;
  }
  at::Tensor h_block = d_weights.narrow(1, 0, H);
  at::Tensor input_block = d_weights.narrow(1, H, sizes.input_features);
  at::mm_out(h_block, d_gates_t, old_h);
  at::mm_out(input_block, d_gates_t, input);
  return d_weights;
}

// d_old_h and d_input, those that are wanted: the two column blocks of d_gates @ weights.
static std::tuple<at::Tensor, at::Tensor> multiply_d_inputs(const at::Tensor& d_gates,
                                                            const at::Tensor& weights,
                                                            bool wants_d_old_h, bool wants_d_input,
                                                            const CellSizes& sizes) {
  const int64_t H = sizes.state_size;
  if (!d_gates.is_cuda() && wants_d_old_h && wants_d_input) {
    const at::Tensor both = at::empty({sizes.batch_size, weights.size(1)}, d_gates.options());
    multiply(both, d_gates, weights, /*adds=*/false);
    return split_columns(both, H);
  }
  const auto block = [&](int64_t first, int64_t columns) {
    const at::Tensor d_x = at::empty({sizes.batch_size, columns}, d_gates.options());
    multiply(d_x, d_gates, weights.narrow(1, first, columns), /*adds=*/false);
    return d_x;
  };
  return std::make_tuple(wants_d_old_h ? block(0, H) : at::Tensor(),
                         wants_d_input ? block(H, sizes.input_features) : at::Tensor());
}

ProductGradients multiply_gradients(const at::Tensor& d_gates, const at::Tensor& input,
                                    const at::Tensor& weights, const at::Tensor& bias,
                                    const at::Tensor& old_h, const CellSizes& sizes,
                                    const GradientMask& mask) {
  const int64_t B = sizes.batch_size;
  const int64_t H = sizes.state_size;
  const int64_t I = sizes.input_features;
  const bool wants_d_bias = mask[2] && bias.defined();
  ProductGradients gradients;
  // The largest first: with smaller allocations in between, the C library's heap often fails to
  // give d_weights the block that the last step's was freed from, and asks the system for fresh
  // pages.
  const bool fuses = fits_fused_gradients(input, sizes);
  if (fuses || fits_small_products(input, weights, sizes, most_rows_backward(weights))) {
    if (mask[1]) gradients.d_weights = at::empty({3 * H, H + I}, d_gates.options());
    if (mask[3]) gradients.d_old_h = at::empty({B, H}, d_gates.options());
    if (mask[0]) gradients.d_input = at::empty({B, I}, d_gates.options());
    if (wants_d_bias) gradients.d_bias = at::empty(bias.sizes(), d_gates.options());
    if (fuses) {
      with_core(input, [&](auto core, CUstream_st* stream) {
        run_gradient_products<decltype(core)>(core.gradient_products, stream, d_gates, input,
                                              weights, old_h, sizes, gradients);
      });
    } else {
      run_gradient_products<Core<float>>(&lltm_gradient_products_cpu_float, nullptr, d_gates, input,
                                         weights, old_h, sizes, gradients);
    }
    return gradients;
  }
  if (mask[1]) gradients.d_weights = multiply_d_weights(d_gates, input, old_h, sizes);
  std::tie(gradients.d_old_h, gradients.d_input) =
      multiply_d_inputs(d_gates, weights, mask[3], mask[0], sizes);
  if (wants_d_bias) gradients.d_bias = d_gates.sum(0, /*keepdim=*/bias.dim() == 2);
  return gradients;
}

}  // namespace lltm_bindings
