#include "sequence_products.h"

#include <ATen/ops/addmm.h>

#include <algorithm>

#include "cublas.h"
#include "dispatch.h"
#include "fused_cell.h"
#include "layout.h"

namespace lltm_bindings {
namespace {

// Terms of d_input that are worth sharing out, and that may be added up one after another.
const int64_t kLongestSum = 768;
// Of a product of fewer tiles cuBLAS shares the terms out itself, and better than a batch of parts.
const int64_t kTile = 128;
const int64_t kFewTiles = 32;

// Of d_input, of all its terms. A loop's products are of few rows, and their terms shared out.
int64_t longest_sum(const at::Tensor& d_input, int64_t terms) {
  const auto tiles = [](int64_t values) { return (values + kTile - 1) / kTile; };
  const bool is_small = tiles(d_input.size(0)) * tiles(d_input.size(1)) < kFewTiles;
  if (is_small || terms <= kLongestSum) return terms;
  return (std::min)(kLongestSum, (terms + 3) / 4);
}

template <typename Scalar>
bool multiply_by_cublas(const at::Tensor& out, const at::Tensor& a, const at::Tensor& weights,
                        bool transposed, bool adds) {
  return Cublas(true).multiply(Matrix<Scalar>(out, 0, out.size(0)), Matrix<Scalar>(a, 0, a.size(0)),
                               Matrix<Scalar>(weights, 0, weights.size(0)), transposed, adds);
}

// out = a @ weights (or weights^T), or is added to; rows of all lie dense. On a GPU by cuBLAS
// itself, which takes less of the host's time; but half types are ATen's, which knows how they may
// be summed up.
void multiply_at_once(const at::Tensor& out, const at::Tensor& a, const at::Tensor& weights,
                      bool transposed, bool adds) {
  if (out.is_cuda() && out.scalar_type() == at::kFloat) {
    if (multiply_by_cublas<float>(out, a, weights, transposed, adds)) return;
  } else if (out.is_cuda() && out.scalar_type() == at::kDouble) {
    if (multiply_by_cublas<double>(out, a, weights, transposed, adds)) return;
  }
  multiply(out, a, transposed ? weights.t() : weights, adds);
}

}  // namespace

Way choose_way(const SequenceArguments& a, const SequenceSizes& sizes, int64_t steps, Pass pass) {
  const OneLaunch launch = plan_one_launch(a, sizes, steps, pass);
  if (launch.plan.path != LLTM_SEQUENCE_NONE) return {Path::kOneLaunch, launch};
  // With packed data the rows of two steps differ.
  const bool fused =
      kWithCuda && a.input.is_cuda() && !a.batch_sizes.defined() &&
      fits_fused_product(a.input, sizes.batch_size, sizes.state_size, sizes.state_size);
  return {fused ? Path::kFusedSteps : Path::kProductAndStep, launch};
}

SequenceProducts::SequenceProducts(const SequenceArguments& a, const SequenceSizes& sizes,
                                   Pass pass) {
  const int64_t H = sizes.state_size;
  const at::Tensor weights = dense(a.weights);
  if (a.bias.defined()) bias_ = dense(a.bias.dim() == 2 ? a.bias.select(0, 0) : a.bias);
  weights_h_ = weights.narrow(1, 0, H);
  weights_x_ = weights.narrow(1, H, sizes.input_features);
  if (a.input.is_cuda()) return;
  if (pass == Pass::kBackward) packed_weights_h_ = PackedFactor(weights_h_, sizes.rows);
  if (pass == Pass::kBackward && !a.recompute) return;  // no step forward is taken
  packed_weights_h_t_ = PackedFactor(weights_h_.t(), sizes.rows);
  // A CPU reads the transpose 1.3 to 1.7 times faster than a transposed view, once a step.
  if (!packed_weights_h_t_.defined() && sizes.steps > 1) {
    weights_h_t_ = transpose(weights_h_.contiguous());
  }
}

at::Tensor SequenceProducts::weights_h_transposed() const { return weights_h_.t().contiguous(); }

void SequenceProducts::input_gates(const at::Tensor& gates, const at::Tensor& input) const {
  if (!bias_.defined()) return input_product(gates, input);
  at::Tensor out = gates;
  if (outruns_aten(out) || (out.is_cuda() && out.scalar_type() == at::kDouble)) {
    out.copy_(bias_.expand_as(out));
    multiply_at_once(out, input, weights_x_, /*transposed=*/true, /*adds=*/true);
  } else {
    at::addmm_out(out, bias_, input, weights_x_.t());
  }
}

void SequenceProducts::input_product(const at::Tensor& gates, const at::Tensor& input) const {
  multiply_at_once(gates, input, weights_x_, /*transposed=*/true, /*adds=*/false);
}

void SequenceProducts::d_input(const at::Tensor& d_input, const at::Tensor& d_gates) const {
  const int64_t longest = longest_sum(d_input, d_gates.size(1));
  if (d_gates.size(1) <= longest) {
    multiply_at_once(d_input, d_gates, weights_x_, /*transposed=*/false, /*adds=*/false);
  } else {
    multiply_in_parts(d_input, d_gates, weights_x_, /*adds=*/false, longest);
  }
}

}  // namespace lltm_bindings
