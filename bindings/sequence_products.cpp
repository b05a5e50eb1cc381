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
// Multiplications of the core's own product of a whole sequence: in float32, of the input and of
// its gradient; at less accuracy.
const int64_t kMostOfInput = 1700000000;
const int64_t kMostOfGradient = 500000000;
const int64_t kMostOfLess = 250000000;
const int64_t kMostOfDouble = 3000000;  // by multiply-add, where a library has tensor cores

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
  const auto factor = [&] { return transposed ? weights.t() : weights; };
  const bool is_large = is_worth_tensor_cores(out, a.size(1));
  if (is_large && multiply_by_tensor_cores(out, a, factor(), adds)) return;
  if (out.is_cuda() && out.scalar_type() == at::kFloat) {
    if (multiply_by_cublas<float>(out, a, weights, transposed, adds)) return;
  } else if (out.is_cuda() && out.scalar_type() == at::kDouble) {
    if (multiply_by_cublas<double>(out, a, weights, transposed, adds)) return;
  }
  multiply(out, a, factor(), adds);
}

// Whether the core's product takes less time than cuBLAS's, which is 25 microseconds of a host's,
// as measured on an H200. Its sums are made term by term.
bool fits_core(const at::Tensor& out, int64_t rows, int64_t inner, int64_t columns,
               bool transposed) {
  if (!kWithCuda || !out.is_cuda() || rows > 1 << 20) return false;
  if (inner > kLongestSum || columns > 4096) return false;  // and the product does not overflow
  int64_t most = kMostOfLess;
  if (out.scalar_type() == at::kDouble) most = kMostOfDouble;
  if (out.scalar_type() == at::kFloat && !allows_tf32(out)) {
    most = transposed ? kMostOfInput : kMostOfGradient;
  }
  return rows * inner * columns <= most;
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
                                   Pass pass)
    : state_size_(sizes.state_size),
      input_features_(sizes.input_features),
      weights_(dense(a.weights)) {
  if (a.bias.defined()) bias_ = dense(a.bias.dim() == 2 ? a.bias.select(0, 0) : a.bias);
  if (a.input.is_cuda()) return;
  if (pass == Pass::kBackward) packed_weights_h_ = PackedFactor(weights_h(), sizes.rows);
  if (pass == Pass::kBackward && !a.recompute) return;  // no step forward is taken
  packed_weights_h_t_ = PackedFactor(weights_h().t(), sizes.rows);
  // A CPU reads the transpose 1.3 to 1.7 times faster than a transposed view, once a step.
  if (!packed_weights_h_t_.defined() && sizes.steps > 1) {
    weights_h_t_ = transpose(weights_h().contiguous());
  }
}

const at::Tensor& SequenceProducts::weights_h() const {
  if (!weights_h_.defined()) weights_h_ = weights_.narrow(1, 0, state_size_);
  return weights_h_;
}

at::Tensor SequenceProducts::weights_h_transposed() const { return weights_h().t().contiguous(); }

void SequenceProducts::input_gates(const at::Tensor& gates, const at::Tensor& input,
                                   int64_t first) const {
  if (!bias_.defined()) return input_product(gates, input, first);
  const at::Tensor rows = rows_from(as_rows(input), first, gates.size(0));
  at::Tensor out = gates;
  const bool is_cuda_double = out.is_cuda() && out.scalar_type() == at::kDouble;
  const at::Tensor factor = weights_x();
  if (outruns_aten(out) || rounds_sums(out) || is_cuda_double ||
      suits_tensor_cores(out, rows, factor.t())) {
    out.copy_(bias_.expand_as(out));
    multiply_at_once(out, rows, factor, /*transposed=*/true, /*adds=*/true);
  } else {
    at::addmm_out(out, bias_, rows, factor.t());
  }
}

void SequenceProducts::input_product(const at::Tensor& gates, const at::Tensor& input,
                                     int64_t first) const {
  const int64_t count = gates.size(0);
  if (multiply_by_core(gates, 0, input, first, count, /*transposed=*/true)) return;
  multiply_at_once(gates, rows_from(as_rows(input), first, count), weights_x(),
                   /*transposed=*/true, /*adds=*/false);
}

void SequenceProducts::d_input(const at::Tensor& d_input, int64_t first,
                               const at::Tensor& d_gates) const {
  const int64_t count = d_gates.size(0);
  if (multiply_by_core(d_input, first, d_gates, 0, count, /*transposed=*/false)) return;
  const at::Tensor rows = rows_from(as_rows(d_input), first, count);
  const int64_t longest = longest_sum(rows, d_gates.size(1));
  if (d_gates.size(1) <= longest) {
    multiply_at_once(rows, d_gates, weights_x(), /*transposed=*/false, /*adds=*/false);
  } else {
    multiply_in_parts(rows, d_gates, weights_x(), /*adds=*/false, longest);
  }
}

// Returns whether it did: out[out_first:] = factor[first:] @ weights_x (or weights_x^T).
bool SequenceProducts::multiply_by_core(const at::Tensor& out, int64_t out_first,
                                        const at::Tensor& factor, int64_t first, int64_t rows,
                                        bool transposed) const {
  const int64_t inner = factor.size(-1);
  const int64_t columns = out.size(-1);
  if (!fits_core(out, rows, inner, columns, transposed)) return false;
  with_core(out, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    check_status(
        core.sequence_product(rows, inner, columns, C::pointer(factor, first),
                              C::pointer(weights_, 0) + state_size_, state_size_ + input_features_,
                              transposed, allows_tf32(out), C::pointer(out, out_first), stream),
        "sequence_product");
  });
  return true;
}

}  // namespace lltm_bindings
