// What the products of the backward pass work on: a panel of columns, packed.
#ifndef LLTM_GRADIENT_PANEL_H_
#define LLTM_GRADIENT_PANEL_H_

#include "products_host_loops.h"

namespace lltm {
namespace {

template <typename T>
struct GradientBlock {
  ColumnBlock<T> in;
  T* d_x;        // [B, columns]: d_old_h or d_input; or null
  T* d_weights;  // [3H, columns], strided as the weights; or null
  bool prefetches;
};

// Rows of the weights, and vectors of their columns, that are worked on together.
const int kGradientRows = 4;
const int kGradientVectors = kManyRegisters ? 2 : 1;

const int64_t kBatchRows = 64;
const int64_t kPanelBytes = 8192;

// Some columns of x and d_x for some rows of the batch, and d_gates for some rows of the weights,
// packed in the order in which the inner loop wants them. As they lie, rows of x and of d_x are
// often a power of two apart: they would evict each other, and loads wait for stores to addresses
// that are equal in their low bits.
template <typename T>
struct Panel {
  int64_t batch_size;  // at most kBatchRows
  alignas(64) T x[kPanelBytes / sizeof(T)];
  alignas(64) T d_x[kPanelBytes / sizeof(T)];
  alignas(64) T d_gates[kBatchRows * kGradientRows];
};

// How vectors cover a panel's columns. If the last one is short of columns, it begins earlier and
// overlaps the one before it: what both hold is computed twice, alike. That may not be where the
// block is narrower than a vector, nor where products are added to d_weights.
template <typename T>
struct PanelColumns {
  int64_t first, end;
  bool overlaps;

  int64_t rest() const { return overlaps ? 0 : (end - first) % Width<T>::kLanes; }
  int64_t whole_vectors() const {
    return (end - first + (overlaps ? Width<T>::kLanes - 1 : 0)) / Width<T>::kLanes;
  }
  int64_t vectors() const { return whole_vectors() + (rest() > 0 ? 1 : 0); }
  int64_t start(int64_t vector) const {
    const int64_t column = first + vector * Width<T>::kLanes;
    const int64_t last = end - Width<T>::kLanes;
    return overlaps && column > last ? last : column;
  }
};

template <bool kPartial, typename T>
LLTM_INLINE void load_columns(const T* from, int64_t count, Vector<T>* to) {
  kPartial ? load_lanes(from, count, to) : load_vector(from, to);
}

template <bool kPartial, typename T>
LLTM_INLINE void store_columns(const Vector<T>& from, int64_t count, T* to) {
  kPartial ? store_lanes(from, count, to) : store_vector(from, to);
}

// Packs x, if there is one, and clears d_x.
template <typename T>
void pack_panel(const T* x, int64_t stride, const PanelColumns<T>& columns, Panel<T>& panel) {
  const int64_t lanes = Width<T>::kLanes;
  const Vector<T> zeros = Vector<T>();
  T* to = panel.x;
  for (int64_t v = 0; v < columns.vectors(); ++v) {
    for (int64_t b = 0; b < panel.batch_size; ++b, to += lanes) {
      store_vector(zeros, panel.d_x + (to - panel.x));
      if (!x) continue;
      Vector<T> some;
      const T* from = x + b * stride + columns.start(v);
      v < columns.whole_vectors() ? load_vector(from, &some)
                                  : load_lanes(from, columns.rest(), &some);
      store_vector(some, to);
    }
  }
}

template <typename T>
void unpack_d_x(const Panel<T>& panel, const PanelColumns<T>& columns, T* d_x, int64_t stride) {
  const T* from = panel.d_x;
  for (int64_t v = 0; v < columns.vectors(); ++v) {
    for (int64_t b = 0; b < panel.batch_size; ++b, from += Width<T>::kLanes) {
      Vector<T> some;
      load_vector(from, &some);
      T* to = d_x + b * stride + columns.start(v);
      v < columns.whole_vectors() ? store_vector(some, to) : store_lanes(some, columns.rest(), to);
    }
  }
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_GRADIENT_PANEL_H_
