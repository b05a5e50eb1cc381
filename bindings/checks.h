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

struct CellSizes {
  int64_t batch_size;
  int64_t state_size;
  int64_t input_features;
};

// Checks `tensor` against a shape, and against the device and dtype of `like` (called like_name).
// `meaning` says in words what the shape is, such as "(batch_size, state_size)".
void check_tensor(const at::Tensor& tensor, const char* name, at::IntArrayRef shape,
                  const char* meaning, const at::Tensor& like, const char* like_name);

// The cell's five arguments; an undefined `bias` is none.
CellSizes check_cell(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
                     const at::Tensor& old_h, const at::Tensor& old_cell);

// The environment variable's value: one of two, or "" where it is not set.
std::string chosen(const char* variable, const char* one, const char* other);

// `tensor` is dense and of a supported dtype.
void check_dense(const at::Tensor& tensor, const char* name);

// `weights` and `bias` (or none) belong together and to `input`; returns state_size.
int64_t check_cell_parameters(const at::Tensor& weights, const at::Tensor& bias,
                              const at::Tensor& input, int64_t input_features);

struct SequenceArguments;

struct SequenceSizes {
  int64_t steps;
  int64_t batch_size;
  int64_t state_size;
  int64_t input_features;
  int64_t rows;  // of all steps together
};

SequenceSizes check_sequence(const SequenceArguments& arguments);

// `tensor` is a dense matrix on a device, of a supported dtype.
void check_matrix(const at::Tensor& tensor, const char* name, const char* meaning);

// `weights` is (3 * state_size, state_size + input_features) for some state_size, which it returns.
int64_t check_weights(const at::Tensor& weights, int64_t input_features);

}  // namespace lltm_bindings
