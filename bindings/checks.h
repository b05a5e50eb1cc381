// What a caller may pass. Everything is checked before any memory is touched, and every error
// names the argument, what it got and what was expected.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace lltm_bindings {

// As Python shows them: "(2, 4)", "(12,)", "torch.float32". Numbers too are made text here: through
// a stream they are lost, or the process, where a compiler links a libstdc++ of its own into this
// library beside that of torch.
std::string shown(at::IntArrayRef shape);
std::string shown(at::ScalarType dtype);
inline std::string shown(int64_t number) { return std::to_string(number); }

// Sizes are int64_t, or for the formulas what may be a symbol: symbolic.h.
template <typename N>
at::ArrayRef<N> shape_of(const at::Tensor& tensor);

template <typename N>
struct CellSizesOf {
  N batch_size;
  N state_size;
  N input_features;
};
typedef CellSizesOf<int64_t> CellSizes;

// Checks `tensor` against a shape, and against the device and dtype of `like` (called like_name).
// `meaning` says in words what the shape is, such as "(batch_size, state_size)".
template <typename N>
void check_shape(const at::Tensor& tensor, const char* name, at::ArrayRef<N> shape,
                 const char* meaning, const at::Tensor& like, const char* like_name);
inline void check_tensor(const at::Tensor& tensor, const char* name, at::IntArrayRef shape,
                         const char* meaning, const at::Tensor& like, const char* like_name) {
  check_shape<int64_t>(tensor, name, shape, meaning, like, like_name);
}

// The cell's five arguments; an undefined `bias` is none.
template <typename N = int64_t>
CellSizesOf<N> check_cell(const at::Tensor& input, const at::Tensor& weights,
                          const at::Tensor& bias, const at::Tensor& old_h,
                          const at::Tensor& old_cell);

// The environment variable's value: one of two, or "" where it is not set.
std::string chosen(const char* variable, const char* one, const char* other);

// `tensor` is dense and of a supported dtype.
void check_dense(const at::Tensor& tensor, const char* name);

// `weights` (3 * state_size, state_size + input_features) and `bias`, or none, belong together and
// to `input`; returns state_size.
template <typename N>
N check_cell_parameters(const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& input,
                        const N& input_features);

struct SequenceArguments;

template <typename N>
struct SequenceSizesOf {
  N steps;
  N batch_size;
  N state_size;
  N input_features;
  N rows;  // of all steps together
};
typedef SequenceSizesOf<int64_t> SequenceSizes;

template <typename N = int64_t>
SequenceSizesOf<N> check_sequence(const SequenceArguments& arguments);

// `tensor` is a dense matrix on a device, of a supported dtype.
void check_matrix(const at::Tensor& tensor, const char* name, const char* meaning);

}  // namespace lltm_bindings
