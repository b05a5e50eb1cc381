// Sizes that may be symbols: what torch.compile and make_fx trace torch.func.vmap with. Before
// torch 2.1 there are none in C++.
#pragma once

#include <ATen/ATen.h>
#include <torch/version.h>

#include <vector>

#include "checks.h"

namespace lltm_bindings {

// As numbers: a symbol has none.
template <>
inline at::IntArrayRef shape_of(const at::Tensor& tensor) {
  return tensor.sizes();
}

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
#define LLTM_HAS_SYMBOLS
typedef c10::SymInt Size;
typedef c10::SymIntArrayRef Shape;

inline Size size_of(const at::Tensor& tensor, int64_t dim) { return tensor.sym_size(dim); }

inline at::Tensor columns_of(const at::Tensor& matrix, const Size& first, const Size& count) {
  return matrix.narrow_symint(1, first, count);
}

inline at::Tensor reshaped(const at::Tensor& tensor, Shape shape) {
  return tensor.reshape_symint(shape);
}

inline at::Tensor zeros_of(Shape shape, const at::TensorOptions& options) {
  return at::zeros_symint(shape, options);
}

template <>
inline Shape shape_of(const at::Tensor& tensor) {
  return tensor.sym_sizes();
}

// Only for errors: from then on the symbol is this number.
inline int64_t number_of(const Size& size) { return size.guard_int(__FILE__, __LINE__); }

// A symbol is not.
inline bool is_zero(const Size& size) { return !size.is_heap_allocated() && number_of(size) == 0; }
#else
typedef int64_t Size;
typedef at::IntArrayRef Shape;

inline Size size_of(const at::Tensor& tensor, int64_t dim) { return tensor.size(dim); }

inline at::Tensor columns_of(const at::Tensor& matrix, Size first, Size count) {
  return matrix.narrow(1, first, count);
}

inline at::Tensor reshaped(const at::Tensor& tensor, Shape shape) { return tensor.reshape(shape); }

inline at::Tensor zeros_of(Shape shape, const at::TensorOptions& options) {
  return at::zeros(shape, options);
}

inline bool is_zero(Size size) { return size == 0; }
#endif

inline int64_t number_of(int64_t size) { return size; }

template <typename N>
std::vector<int64_t> numbers_of(at::ArrayRef<N> shape) {
  std::vector<int64_t> numbers;
  for (const N& size : shape) numbers.push_back(number_of(size));
  return numbers;
}

}  // namespace lltm_bindings
