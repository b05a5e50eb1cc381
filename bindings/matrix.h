// Products of matrices: the core's own on a CPU where they are faster than those of ATen, which
// then only hands them on to MKL.
#pragma once

#include <ATen/core/Tensor.h>

namespace lltm_bindings {

// MKL gives AMD's processors its kernels for vectors of 32 bytes. From Zen 5 on the core's, for
// vectors of 64, are about twice as fast.
bool outruns_mkl(const at::Tensor& like);

// out = a @ b, or is added to. Any strides, but rows of `out` lie dense.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds);

// A factor of many products. Undefined where ATen multiplies.
class PackedFactor {
 public:
  PackedFactor() {}
  // For so many rows of products in all.
  PackedFactor(const at::Tensor& b, int64_t rows);

  bool defined() const { return packed_.defined(); }
  // out = a @ b, or is added to.
  void multiply(const at::Tensor& out, const at::Tensor& a, bool adds) const;

 private:
  at::Tensor packed_;
};

}  // namespace lltm_bindings
