// The arguments of the products with the weights, as lltm.h lists them, and their checks.
#ifndef LLTM_PRODUCTS_H_
#define LLTM_PRODUCTS_H_

#include <stdint.h>

#include "lltm_cell.h"
#include "lltm_matrix.h"

namespace lltm {

template <typename T>
struct GateProducts {
  int64_t batch_size;
  int64_t state_size;
  int64_t input_features;
  const T* input;    // [B, I]
  const T* weights;  // [3H, H + I]
  const T* old_h;    // [B, H]
  T* gates;          // [B, 3H]
};

template <typename T>
struct GradientProducts {
  int64_t batch_size;
  int64_t state_size;
  int64_t input_features;
  const T* d_gates;  // [B, 3H]
  const T* input;    // [B, I]
  const T* weights;  // [3H, H + I]
  const T* old_h;    // [B, H]
  T* d_input;        // [B, I] or null
  T* d_weights;      // [3H, H + I] or null
  T* d_bias;         // [3H] or null
  T* d_old_h;        // [B, H] or null
};

// c = a weights, or a weights^T.
template <typename T>
struct SequenceProduct {
  int64_t rows;
  int64_t inner;
  int64_t columns;
  const T* a;        // [N, K]
  const T* weights;  // [K, M] or [M, K]
  int64_t weights_stride;
  T* c;  // [N, M]
};

template <typename T>
static inline int32_t check(const GateProducts<T>& a) {
  const int32_t status = check_product_sizes(a.batch_size, a.state_size, a.input_features);
  if (status || a.batch_size == 0 || a.state_size == 0) return status;
  if (!a.input && a.input_features > 0) return -4;
  if (!a.weights) return -5;
  if (!a.old_h) return -6;
  return a.gates ? 0 : -7;
}

template <typename T>
static inline int32_t check(const GradientProducts<T>& a) {
  const int32_t status = check_product_sizes(a.batch_size, a.state_size, a.input_features);
  if (status || a.batch_size == 0 || a.state_size == 0) return status;
  if (!a.d_gates) return -4;
  if (!a.input && a.input_features > 0 && a.d_weights) return -5;
  if (!a.weights && (a.d_input || a.d_old_h)) return -6;
  return !a.old_h && a.d_weights ? -7 : 0;
}

template <typename T>
static inline int32_t check(const SequenceProduct<T>& a, bool transposed) {
  if (a.rows < 0) return -1;
  if (a.inner < 0 || !fits_memory(a.rows, a.inner)) return -2;
  if (a.columns < 0 || !fits_memory(a.rows, a.columns)) return -3;
  if (a.rows == 0 || a.columns == 0) return 0;
  if (!a.a && a.inner > 0) return -4;
  if (!a.weights && a.inner > 0) return -5;
  const int64_t lines = transposed ? a.columns : a.inner;
  if (a.weights_stride < (transposed ? a.inner : a.columns)) return -6;
  if (!fits_memory(lines, a.weights_stride)) return -6;
  return a.c ? 0 : -9;
}

}  // namespace lltm

#endif  // LLTM_PRODUCTS_H_
