// Products of matrices: the core's own on a CPU where they are faster than ATen's.
#pragma once

#include <ATen/core/Tensor.h>

namespace lltm_bindings {

// MKL, whose products ATen's are, gives AMD's processors its kernels for vectors of 32 bytes. From
// Zen 5 on the core's, for vectors of 64, are about twice as fast. The environment variable
// LLTM_CPU_PRODUCTS says otherwise: "core" or "aten", read once.
bool outruns_aten(const at::Tensor& like);

// Whether this ATen, on a CPU, adds up products of a half type in that type. torch 1.11 does: then
// 2048 and 1 are 2048.
bool rounds_sums(const at::Tensor& like);

// From so many rows of a product on it pays to pack the other factor. ATen has the others.
const int64_t kRowsWorthPacking = 32;

// out = a @ b, or is added to. Any strides, but rows of `out` lie dense.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds);

// Whether the core's product on tensor cores, which has float's accuracy, takes less time than
// cuBLAS's: whether so many terms are enough, and whether it can be had for these.
bool is_worth_tensor_cores(const at::Tensor& out, int64_t terms);
bool suits_tensor_cores(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

// The same by it. Returns false, and does nothing, where it does not suit.
bool multiply_by_tensor_cores(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                              bool adds);

// The same. Where `out` has many rows cuBLAS adds all terms of float up one after another, and errs
// twice as much or more as products of single steps, whose terms it shares out: at most `longest`,
// rounded up to vectors, are added up like that. Small products of parts are one batch.
void multiply_in_parts(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds,
                       int64_t longest);

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
