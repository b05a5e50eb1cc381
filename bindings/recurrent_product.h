// The product of one step with the recurrent weights, of rows of larger tensors.
#pragma once

#include "cublas.h"
#include "sequence_products.h"

namespace lltm_bindings {

// For a few steps, see Cublas.
template <typename Scalar>
class RecurrentProduct {
 public:
  explicit RecurrentProduct(const SequenceProducts& products)
      : products_(products),
        cublas_(products.weights_h().is_cuda()),
        weights_(products.weights_h(), 0, products.weights_h().size(0)) {}

  // gates[to:] += old_h[from:] @ weights_h^T, `rows` of each
  void add_old_h(const at::Tensor& gates, int64_t to, const at::Tensor& old_h, int64_t from,
                 int64_t rows) const {
    if (by_cublas(gates, to, old_h, from, rows, /*transposed=*/true, /*add=*/true)) return;
    at::Tensor out = gates.narrow(0, to, rows);
    const at::Tensor factor = old_h.narrow(0, from, rows);
    const PackedFactor& packed = products_.packed_weights_h_t();
    if (packed.defined()) return packed.multiply(out, factor, /*adds=*/true);
    multiply(out, factor, products_.weights_h_t(), /*adds=*/true);
  }

  // d_old_h[to:] = d_gates[from:] @ weights_h, or is added to
  void d_old_h(const at::Tensor& d_old_h, int64_t to, const at::Tensor& d_gates, int64_t from,
               int64_t rows, bool add) const {
    if (by_cublas(d_old_h, to, d_gates, from, rows, /*transposed=*/false, add)) return;
    at::Tensor out = d_old_h.narrow(0, to, rows);
    const at::Tensor factor = d_gates.narrow(0, from, rows);
    const PackedFactor& packed = products_.packed_weights_h();
    if (packed.defined()) {
      packed.multiply(out, factor, add);
    } else {
      multiply(out, factor, products_.weights_h(), add);
    }
  }

 private:
  bool by_cublas(const at::Tensor& out, int64_t to, const at::Tensor& factor, int64_t from,
                 int64_t rows, bool transposed, bool add) const {
    return cublas_.multiply(Matrix<Scalar>(out, to, rows), Matrix<Scalar>(factor, from, rows),
                            weights_, transposed, add);
  }

  const SequenceProducts& products_;
  const Cublas cublas_;
  const Matrix<Scalar> weights_;
};

}  // namespace lltm_bindings
