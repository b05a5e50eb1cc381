// The arguments of the products of matrices, as lltm.h lists them, and their checks.
#ifndef LLTM_MATRIX_H_
#define LLTM_MATRIX_H_

#include <stdint.h>

namespace lltm {

template <typename T>
struct MatrixPacking {
  int64_t inner;
  int64_t columns;
  int64_t row_step;
  int64_t column_step;
  const T* b;  // [K, N]
  T* packed;
};

template <typename T>
struct PackedProduct {
  int64_t rows;
  int64_t inner;
  int64_t columns;
  int64_t row_step;
  int64_t column_step;
  int64_t c_row_step;
  int64_t adds;
  const T* a;  // [M, K]
  const T* packed;
  T* c;  // [M, N]
};

// c = a b without what is packed; b.packed is not used.
template <typename T>
struct MatrixProduct {
  PackedProduct<T> product;
  MatrixPacking<T> b;
};

// Whether no index of a dense [rows, columns], its columns rounded up to panels, overflows.
static inline bool fits_memory(int64_t rows, int64_t columns) {
  const int64_t most = INT64_MAX / static_cast<int64_t>(sizeof(double));
  const int64_t rounding = 1024;  // more than a panel has columns
  return columns <= most - rounding && (rows == 0 || columns + rounding <= most / rows);
}

template <typename T>
static inline int32_t check(const MatrixPacking<T>& a) {
  if (a.inner < 0) return -1;
  if (a.columns < 0 || !fits_memory(a.inner, a.columns)) return -2;
  if (a.inner == 0 || a.columns == 0) return 0;
  if (!a.b) return -3;
  return a.packed ? 0 : -6;
}

template <typename T>
static inline int32_t check(const PackedProduct<T>& a) {
  if (a.rows < 0) return -1;
  if (a.inner < 0 || !fits_memory(a.rows, a.inner)) return -2;
  if (a.columns < 0 || !fits_memory(a.inner, a.columns)) return -3;
  if (a.rows == 0 || a.columns == 0) return 0;
  if (a.inner > 0 && !a.a) return -4;
  if (a.inner > 0 && !a.packed) return -7;
  if (!a.c) return -8;
  return a.c_row_step < a.columns || !fits_memory(a.rows, a.c_row_step) ? -9 : 0;
}

// b stands where packed does, and two arguments more precede c.
template <typename T>
static inline int32_t check(const MatrixProduct<T>& a) {
  PackedProduct<T> product = a.product;
  product.packed = a.b.b;
  const int32_t status = check(product);
  return status < -7 ? status - 2 : status;
}

}  // namespace lltm

#endif  // LLTM_MATRIX_H_
