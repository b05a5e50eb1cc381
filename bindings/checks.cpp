#include "checks.h"

#include <cstdlib>

#include "symbolic.h"

namespace lltm_bindings {
namespace {

bool is_supported(at::ScalarType dtype) {
  return dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf ||
         dtype == at::kBFloat16;
}

}  // namespace

std::string chosen(const char* variable, const char* one, const char* other) {
  const char* const value = std::getenv(variable);
  const std::string choice = value ? value : "";
  TORCH_CHECK(choice.empty() || choice == one || choice == other, "lltm_decoupled: ", variable,
              " must be ", one, " or ", other, ", got ", choice);
  return choice;
}

std::string shown(at::IntArrayRef shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + shown(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string shown(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "torch.float32";
    case at::kDouble:
      return "torch.float64";
    case at::kHalf:
      return "torch.float16";
    case at::kBFloat16:
      return "torch.bfloat16";
    case at::kChar:
      return "torch.int8";
    case at::kShort:
      return "torch.int16";
    case at::kInt:
      return "torch.int32";
    case at::kLong:
      return "torch.int64";
    case at::kByte:
      return "torch.uint8";
    case at::kComplexFloat:
      return "torch.complex64";
    case at::kComplexDouble:
      return "torch.complex128";
    case at::kBool:
      return "torch.bool";
    default:
      return c10::toString(dtype);
  }
}

void check_dense(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.defined(), "lltm_decoupled: expected a tensor for ", name, ", got None");
  TORCH_CHECK(tensor.layout() == at::kStrided, "lltm_decoupled: expected ", name,
              " to be a dense tensor, got layout ", tensor.layout());
  TORCH_CHECK(is_supported(tensor.scalar_type()), "lltm_decoupled: expected ", name,
              " of dtype float32, float64, float16 or bfloat16, got ", shown(tensor.scalar_type()));
}

void check_matrix(const at::Tensor& tensor, const char* name, const char* meaning) {
  check_dense(tensor, name);
  TORCH_CHECK(tensor.dim() == 2, "lltm_decoupled: expected ", name, " to have 2 dimensions ",
              meaning, ", got shape ", shown(numbers_of(shape_of<Size>(tensor))));
}

template <typename N>
void check_shape(const at::Tensor& tensor, const char* name, at::ArrayRef<N> shape,
                 const char* meaning, const at::Tensor& like, const char* like_name) {
  TORCH_CHECK(tensor.defined(), "lltm_decoupled: expected a tensor for ", name, ", got None");
  TORCH_CHECK(tensor.layout() == at::kStrided, "lltm_decoupled: expected ", name,
              " to be a dense tensor, got layout ", tensor.layout());
  TORCH_CHECK(tensor.device() == like.device(), "lltm_decoupled: expected ", name,
              " on the device of ", like_name, ", ", like.device(), ", got ", tensor.device());
  TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "lltm_decoupled: expected ", name,
              " of the dtype of ", like_name, ", ", shown(like.scalar_type()), ", got ",
              shown(tensor.scalar_type()));
  TORCH_CHECK(shape_of<N>(tensor) == shape, "lltm_decoupled: expected ", name, " of shape ",
              meaning, " = ", shown(numbers_of(shape)), ", got ",
              shown(numbers_of(shape_of<N>(tensor))));
}

template <typename N>
N check_cell_parameters(const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& input,
                        const N& input_features) {
  const at::ArrayRef<N> shape = shape_of<N>(weights);
  const N state_size = shape[1] - input_features;
  TORCH_CHECK(shape[0] == 3 * state_size,
              "lltm_decoupled: expected weights of shape (3 * state_size, state_size + "
              "input_features), with input_features = ",
              shown(number_of(input_features)), " as input has, got ", shown(numbers_of(shape)));
  check_shape<N>(weights, "weights", shape, "its own", input, "input");
  if (bias.defined()) {
    const bool is_row = bias.dim() == 2;  // (1, 3 * state_size), as the tutorial has it
    const N expected[] = {1, 3 * state_size};
    check_shape<N>(bias, "bias", at::ArrayRef<N>(expected + (is_row ? 0 : 1), is_row ? 2 : 1),
                   is_row ? "(1, 3 * state_size)" : "(3 * state_size)", input, "input");
  }
  return state_size;
}

template <typename N>
CellSizesOf<N> check_cell(const at::Tensor& input, const at::Tensor& weights,
                          const at::Tensor& bias, const at::Tensor& old_h,
                          const at::Tensor& old_cell) {
  check_matrix(input, "input", "(batch_size, input_features)");
  check_matrix(weights, "weights", "(3 * state_size, state_size + input_features)");
  CellSizesOf<N> sizes;
  sizes.batch_size = shape_of<N>(input)[0];
  sizes.input_features = shape_of<N>(input)[1];
  sizes.state_size = check_cell_parameters<N>(weights, bias, input, sizes.input_features);
  const N shape[] = {sizes.batch_size, sizes.state_size};
  const char* const meaning = "(batch_size, state_size)";
  check_shape<N>(old_h, "old_h", shape, meaning, input, "input");
  check_shape<N>(old_cell, "old_cell", shape, meaning, input, "input");
  return sizes;
}

#define LLTM_INSTANTIATE(N)                                                                   \
  template void check_shape(const at::Tensor&, const char*, at::ArrayRef<N>, const char*,     \
                            const at::Tensor&, const char*);                                  \
  template N check_cell_parameters(const at::Tensor&, const at::Tensor&, const at::Tensor&,   \
                                   const N&);                                                 \
  template CellSizesOf<N> check_cell(const at::Tensor&, const at::Tensor&, const at::Tensor&, \
                                     const at::Tensor&, const at::Tensor&);

LLTM_INSTANTIATE(int64_t)
#ifdef LLTM_HAS_SYMBOLS
LLTM_INSTANTIATE(Size)
#endif

}  // namespace lltm_bindings
