#include "sequence_parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include "cublas.h"
#include "dispatch.h"

namespace lltm_bindings {
namespace {

// Up to how many multiplications the core's sums are faster than a library's products, launches
// included; measured on an H200.
int64_t most_multiplications(const at::Tensor& like, int64_t width) {
  if (like.scalar_type() == at::kDouble) return 50000000;  // by multiply-add
  const bool is_full_float = like.scalar_type() == at::kFloat && !allows_tf32(like);
  return width <= (is_full_float ? 256 : 128) ? 4000000000 : 500000000;
}

bool fits_sums(const SequenceArguments& a, const SequenceSizes& sizes) {
  if (!kWithCuda || !a.input.is_cuda() || a.batch_sizes.defined() || sizes.rows == 0) return false;
  const int64_t width = sizes.state_size + sizes.input_features;
  if (width > 4096 || sizes.rows > 1 << 20) return false;  // and the product does not overflow
  return sizes.rows * 3 * sizes.state_size * width <= most_multiplications(a.input, width);
}

}  // namespace

ParameterGradients::ParameterGradients(const SequenceArguments& a, const SequenceSizes& sizes,
                                       int64_t chunks, GradientMask mask)
    : weights_(mask[1] ? a.weights : at::Tensor()),
      bias_(mask[2] ? a.bias : at::Tensor()),
      state_size_(sizes.state_size),
      longest_sum_(3 * (sizes.steps + sizes.batch_size)),
      dtype_(a.input.scalar_type()),
      sum_dtype_(chunks > 1 ? compute_dtype(a.input) : dtype_) {}

void ParameterGradients::add(const Chunk& chunk, const at::Tensor& d_gates, const at::Tensor& input,
                             const OldStates& old_states) {
  if (bias_.defined()) {
    const at::Tensor sum = d_gates.sum(0, /*keepdim=*/bias_.dim() == 2, sum_dtype_);
    d_bias_ = d_bias_.defined() ? d_bias_.add_(sum) : sum;
  }
  if (!weights_.defined()) return;
  if (!d_weights_.defined()) allocate();
  old_states.for_each(chunk, [&](int64_t first, int64_t rows, const at::Tensor& old_h) {
    add_product(h_columns_, rows_from(d_gates, first, rows), old_h);
  });
  add_product(input_columns_, d_gates, input);
}

bool ParameterGradients::sum_at_once(const SequenceArguments& a, const SequenceSizes& sizes,
                                     const Chunk& chunk, const at::Tensor& d_gates,
                                     const at::Tensor& input, const at::Tensor& h0,
                                     const at::Tensor& output) {
  if (chunk.all.rows < sizes.rows || !fits_sums(a, sizes)) return false;
  if (!weights_.defined() && !bias_.defined()) return true;
  if (weights_.defined()) d_weights_ = at::empty(weights_.sizes(), weights_.options());
  if (bias_.defined()) d_bias_ = at::empty(bias_.sizes(), bias_.options());
  const int64_t values = sequence_gradients_workspace(sizes.rows, sizes.batch_size,
                                                      sizes.state_size, sizes.input_features);
  const at::Tensor workspace = at::empty({values}, input.options().dtype(compute_dtype(input)));
  with_core(input, [&](auto core, CUstream_st* stream) {
    typedef decltype(core) C;
    check_status(core.sequence_gradients(
                     sizes.rows, sizes.batch_size, sizes.state_size, sizes.input_features,
                     a.reverse, allows_tf32(input), C::pointer(d_gates, 0), C::pointer(input, 0),
                     C::pointer(h0, 0), C::pointer(output, 0), C::compute_pointer(workspace, 0),
                     C::pointer(d_weights_, 0), C::pointer(d_bias_, 0), stream),
                 "sequence_gradients");
  });
  h_columns_.begun = input_columns_.begun = true;
  return true;
}

at::Tensor ParameterGradients::d_weights() {
  if (!weights_.defined()) return weights_;
  if (!d_weights_.defined()) allocate();
  for (Columns* columns : {&h_columns_, &input_columns_}) {
    if (!columns->begun) columns->sum.zero_();
  }
  return d_weights_.to(dtype_);
}

at::Tensor ParameterGradients::d_bias() const {
  if (!bias_.defined()) return bias_;
  return d_bias_.defined() ? d_bias_.to(dtype_) : at::zeros_like(bias_);
}

void ParameterGradients::allocate() {
  d_weights_ = at::empty(weights_.sizes(), weights_.options().dtype(sum_dtype_));
  h_columns_ = {d_weights_.narrow(1, 0, state_size_), false};
  const int64_t features = weights_.size(1) - state_size_;
  input_columns_ = {d_weights_.narrow(1, state_size_, features), false};
}

void ParameterGradients::add_product(Columns& columns, const at::Tensor& d_gates,
                                     const at::Tensor& factor) const {
  if (sum_dtype_ == dtype_) {
    multiply_in_parts(columns.sum, d_gates.t(), factor, /*adds=*/columns.begun, longest_sum_);
  } else {
    const at::Tensor part = at::empty(columns.sum.sizes(), factor.options());
    multiply(part, d_gates.t(), factor, /*adds=*/false);
    columns.begun ? columns.sum.add_(part) : columns.sum.copy_(part);
  }
  columns.begun = true;
}

}  // namespace lltm_bindings
