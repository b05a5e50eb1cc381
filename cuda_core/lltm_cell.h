// The arguments of a cell's two passes, as lltm.h lists them, and their checks.
#ifndef LLTM_CELL_H_
#define LLTM_CELL_H_

#include <stdint.h>

namespace lltm {

template <typename T>
struct CellForward {
  int64_t batch_size;
  int64_t state_size;
  const T* gates;     // [B, 3H]
  const T* bias;      // [3H] or null
  const T* old_cell;  // [B, H]
  T* new_h;           // [B, H]
  T* new_cell;        // [B, H]
  T* input_gate;      // [B, H] or null
  T* output_gate;     // [B, H] or null
  T* candidate_cell;  // [B, H] or null
};

template <typename T>
struct CellBackward {
  int64_t batch_size;
  int64_t state_size;
  const T* grad_h;     // [B, H] or null
  const T* grad_cell;  // [B, H] or null
  const T* gates;      // [B, 3H]
  const T* bias;       // [3H] or null
  const T* new_cell;   // [B, H]
  T* d_gates;          // [B, 3H]
  T* d_old_cell;       // [B, H]
};

// The fused forward pass: the cell's arguments, its products in place of its gates.
template <typename S>
struct CellFused {
  CellForward<S> cell;  // gates and the saved activations are null
  int64_t input_features;
  const S* input;    // [B, I]
  const S* weights;  // [3H, H + I]
  const S* old_h;    // [B, H]
  S* gates;          // [B, 3H] or null
};

// batch_size is argument 1, state_size argument 2 of every function.
static inline int32_t check_sizes(int64_t batch_size, int64_t state_size) {
  if (batch_size < 0) return -1;
  if (state_size < 0) return -2;
  // The byte count of [B, 3H] doubles must fit, so that no index overflows.
  const int64_t most = INT64_MAX / (3 * static_cast<int64_t>(sizeof(double)));
  if (state_size > 0 && batch_size > most / state_size) return -1;
  return 0;
}

// And input_features argument 3 of those with the weights: no index of [B, 3H], [3H, H + I] or
// [B, I] overflows.
static inline int32_t check_product_sizes(int64_t batch_size, int64_t state_size,
                                          int64_t input_features) {
  const int32_t status = check_sizes(batch_size, state_size);
  if (status) return status;
  const int64_t most = INT64_MAX / (3 * static_cast<int64_t>(sizeof(double)));
  if (input_features < 0 || input_features > most - state_size) return -3;
  const int64_t longest = batch_size > state_size ? batch_size : state_size;
  return longest > 0 && state_size + input_features > most / longest ? -3 : 0;
}

// Whether rows of [3H, H] may begin so far apart: no index overflows.
static inline bool fits_stride(int64_t state_size, int64_t stride) {
  const int64_t most = INT64_MAX / (3 * static_cast<int64_t>(sizeof(double)));
  return stride >= state_size && (state_size == 0 || stride <= most / state_size);
}

template <typename Arguments>
static inline bool is_empty(const Arguments& a) {
  return a.batch_size == 0 || a.state_size == 0;
}

template <typename T>
static inline int32_t check(const CellForward<T>& a) {
  const int32_t status = check_sizes(a.batch_size, a.state_size);
  if (status || is_empty(a)) return status;
  if (!a.gates) return -3;
  if (!a.old_cell) return -5;
  if (!a.new_h) return -6;
  if (!a.new_cell) return -7;
  return 0;
}

template <typename T>
static inline int32_t check(const CellBackward<T>& a) {
  const int32_t status = check_sizes(a.batch_size, a.state_size);
  if (status || is_empty(a)) return status;
  if (!a.gates) return -5;
  if (!a.new_cell) return -7;
  if (!a.d_gates) return -8;
  if (!a.d_old_cell) return -9;
  return 0;
}

template <typename S>
static inline int32_t check(const CellFused<S>& a) {
  const int32_t status =
      check_product_sizes(a.cell.batch_size, a.cell.state_size, a.input_features);
  if (status || is_empty(a.cell)) return status;
  if (!a.input && a.input_features > 0) return -4;
  if (!a.weights) return -5;
  if (!a.old_h) return -7;
  if (!a.cell.old_cell) return -8;
  if (!a.cell.new_h) return -9;
  if (!a.cell.new_cell) return -10;
  return 0;
}

}  // namespace lltm

#endif  // LLTM_CELL_H_
