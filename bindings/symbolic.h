// Sizes that may be symbols: what torch.compile and make_fx trace torch.func.vmap with. Before
// torch 2.1 there are none in C++.
#pragma once

#include <ATen/ATen.h>
#include <torch/version.h>

#include <initializer_list>

namespace lltm_bindings {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 1)
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

inline bool has_symbols(std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    for (const Size& size : tensor.sym_sizes()) {
      if (size.is_heap_allocated()) return true;
    }
  }
  return false;
}
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

inline bool has_symbols(std::initializer_list<at::Tensor>) { return false; }
#endif

}  // namespace lltm_bindings
