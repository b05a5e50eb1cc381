#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "dispatch.h"
#include "sequence.h"
#include "symbolic.h"

namespace lltm_bindings {

void check_numbers(const at::Tensor& batch_sizes) {
  TORCH_CHECK(batch_sizes.device().is_cpu() && batch_sizes.scalar_type() == at::kLong &&
                  batch_sizes.dim() == 1,
              "lltm_decoupled: expected batch_sizes to be an int64 vector on the CPU, got dtype ",
              shown(batch_sizes.scalar_type()), ", shape ", shown(batch_sizes.sizes()), ", on ",
              batch_sizes.device());
}

namespace {

// -> steps
template <typename N>
int64_t check_batch_sizes(const at::Tensor& batch_sizes, const N& batch_size, const N& rows) {
  check_numbers(batch_sizes);
  const int64_t steps = batch_sizes.numel();
  const int64_t* const sizes = batch_sizes.data_ptr<int64_t>();
  int64_t sum = 0;
  for (int64_t t = 0; t < steps; ++t) {
    TORCH_CHECK(sizes[t] > 0 && (t == 0 ? batch_size : N(sizes[t - 1])) >= sizes[t],
                "lltm_decoupled: expected batch_sizes to be positive and to never grow, from at "
                "most the batch_size of h0, ",
                shown(number_of(batch_size)), ", got ", shown(sizes[t]), " at step ", shown(t));
    sum += sizes[t];
  }
  TORCH_CHECK(steps == 0 || batch_size == sizes[0],
              "lltm_decoupled: expected batch_sizes to begin with the batch_size of h0, ",
              shown(number_of(batch_size)), ", got ", shown(steps ? sizes[0] : 0));
  TORCH_CHECK(rows == sum, "lltm_decoupled: expected batch_sizes to sum to the rows of input, ",
              shown(number_of(rows)), ", got ", shown(sum));
  return steps;
}

template <typename N>
void check_mask(const at::Tensor& mask, const char* name, const SequenceArguments& a,
                const SequenceSizesOf<N>& sizes) {
  if (!mask.defined()) return;
  TORCH_CHECK(mask.layout() == at::kStrided, "lltm_decoupled: expected ", name,
              " to be a dense tensor, got layout ", mask.layout());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "lltm_decoupled: expected ", name,
              " to be of dtype bool, got ", shown(mask.scalar_type()));
  TORCH_CHECK(mask.device() == a.input.device(), "lltm_decoupled: expected ", name,
              " on the device of input, ", a.input.device(), ", got ", mask.device());
  const N shape[] = {sizes.steps, sizes.batch_size, sizes.state_size};
  const N packed_shape[] = {sizes.rows, sizes.state_size};
  const bool packed = a.batch_sizes.defined();
  const at::ArrayRef<N> expected = packed ? at::ArrayRef<N>(packed_shape) : at::ArrayRef<N>(shape);
  TORCH_CHECK(shape_of<N>(mask) == expected, "lltm_decoupled: expected ", name,
              " of the shape of output, ", shown(numbers_of(expected)), ", got ",
              shown(numbers_of(shape_of<N>(mask))));
}

}  // namespace

at::Tensor plain_batch_sizes(const OptionalTensor& batch_sizes) {
  if (!batch_sizes.has_value() || !batch_sizes->defined()) return at::Tensor();
  if (batch_sizes->has_storage() || batch_sizes->dim() != 1) return batch_sizes->contiguous();
  std::vector<int64_t> sizes;
  for (int64_t t = 0; t < batch_sizes->size(0); ++t) {
    sizes.push_back(batch_sizes->select(0, t).item<int64_t>());
  }
  // Not at::empty, whose result would be wrapped in turn.
  const at::Tensor plain(
      at::detail::empty_cpu({batch_sizes->size(0)}, at::kLong, /*pin_memory=*/false));
  std::copy(sizes.begin(), sizes.end(), plain.data_ptr<int64_t>());
  return plain;
}

template <typename N>
SequenceSizesOf<N> check_sequence(const SequenceArguments& a) {
  const bool packed = a.batch_sizes.defined();
  const char* const meaning = packed ? "(rows, input_features), as batch_sizes is given"
                                     : "(steps, batch_size, "
                                       "input_features)";
  check_dense(a.input, "input");
  TORCH_CHECK(a.input.dim() == (packed ? 2 : 3), "lltm_decoupled: expected input to have ",
              packed ? "2" : "3", " dimensions ", meaning, ", got shape ",
              shown(numbers_of(shape_of<N>(a.input))));
  check_matrix(a.weights, "weights", "(3 * state_size, state_size + input_features)");
  const bool has_state = a.h0.defined() || a.c0.defined() || packed;
  TORCH_CHECK(!has_state || (a.h0.defined() && a.c0.defined()), "lltm_decoupled: expected ",
              a.h0.defined() ? "c0" : "h0", " to be a tensor, as ",
              packed ? "batch_sizes" : "the other state", " is given, got None");
  TORCH_CHECK(
      !has_state || a.h0.dim() == 2,
      "lltm_decoupled: expected h0 to have 2 dimensions (batch_size, state_size), got shape ",
      has_state ? shown(numbers_of(shape_of<N>(a.h0))) : "");
  const at::ArrayRef<N> input_shape = shape_of<N>(a.input);
  SequenceSizesOf<N> sizes;
  sizes.input_features = input_shape.back();
  sizes.batch_size = packed ? shape_of<N>(a.h0)[0] : input_shape[1];
  sizes.state_size = check_cell_parameters<N>(a.weights, a.bias, a.input, sizes.input_features);
  const N state_shape[] = {sizes.batch_size, sizes.state_size};
  if (has_state) {
    check_shape<N>(a.h0, "h0", state_shape, "(batch_size, state_size)", a.input, "input");
    check_shape<N>(a.c0, "c0", state_shape, "(batch_size, state_size)", a.input, "input");
  }
  if (packed) {
    sizes.rows = input_shape[0];
    sizes.steps = check_batch_sizes<N>(a.batch_sizes, sizes.batch_size, sizes.rows);
  } else {
    sizes.steps = input_shape[0];
    sizes.rows = sizes.steps * sizes.batch_size;
  }
  check_mask(a.zoneout_h, "zoneout_h", a, sizes);
  check_mask(a.zoneout_c, "zoneout_c", a, sizes);
  return sizes;
}

template SequenceSizes check_sequence(const SequenceArguments&);
#ifdef LLTM_HAS_SYMBOLS
template SequenceSizesOf<Size> check_sequence(const SequenceArguments&);
#endif

SequenceSizes check_sequence_backward(const SequenceGradients& grads, const SequenceArguments& a,
                                      const at::Tensor& output, const at::Tensor& activations,
                                      const at::Tensor& cells) {
  const SequenceSizes sizes = check_sequence(a);
  const int64_t H = sizes.state_size;
  const int64_t state_shape[] = {sizes.batch_size, H};
  std::vector<int64_t> output_shape = a.input.sizes().vec();
  output_shape.back() = H;
  const auto check_optional = [&](const at::Tensor& grad, const char* name, at::IntArrayRef shape) {
    if (grad.defined()) check_tensor(grad, name, shape, "that of its output", a.input, "input");
  };
  check_optional(grads.output, "grad_output", output_shape);
  check_optional(grads.h_n, "grad_h_n", state_shape);
  check_optional(grads.c_n, "grad_c_n", state_shape);
  check_tensor(output, "output", output_shape, "that of input, with state_size features", a.input,
               "input");
  const int64_t activations_shape[] = {a.recompute ? 0 : sizes.rows, 3 * H};
  check_tensor(activations, "activations", activations_shape, "(rows, 3 * state_size)", a.input,
               "input");
  const int64_t chunks_shape[] = {chunks_of(sizes.steps), sizes.batch_size, H};
  const int64_t cells_shape[] = {sizes.rows, H};
  const at::IntArrayRef expected =
      a.recompute ? at::IntArrayRef(chunks_shape) : at::IntArrayRef(cells_shape);
  // With recompute they are in the type that the core computes in.
  const at::Tensor like =
      a.recompute ? at::empty({0}, a.input.options().dtype(compute_dtype(a.input))) : a.input;
  check_tensor(cells, "cells", expected,
               a.recompute ? "(chunks, batch_size, state_size)" : "(rows, state_size)", like,
               a.recompute ? "the computation" : "input");
  return sizes;
}

}  // namespace lltm_bindings
