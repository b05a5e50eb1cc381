// The loops of the products of matrices, compiled for each instruction set as those of
// cell_host_loops.h.
//
// An element of c is a sum over k in one order, whatever rows and panels it is computed with: a
// product shared out over threads, or of more rows, has the same bits.
#ifndef LLTM_MATRIX_HOST_LOOPS_H_
#define LLTM_MATRIX_HOST_LOOPS_H_

#include "host_vector.h"
#include "lltm_matrix.h"

namespace lltm {
namespace {

const int kPanelVectors = 3;
template <typename T>
struct PanelWidth {
  enum : int64_t { kColumns = kPanelVectors * Width<T>::kLanes };
};

// Rows of c that are worked on together: with those of a panel, 12 or 24 registers.
const int kTileRows = LLTM_VECTOR_BYTES == 64 ? 8 : 4;

// So much of k at a time: that part of a panel stays in first-level cache, or near it, while all
// rows pass by, and sums of more parts round better.
const int64_t kInnerPart = 256;

// c[0:kRows, 0:columns] of one panel; pointers are those of its first element.
template <int kRows, typename T>
void multiply_tile(const PackedProduct<T>& p, int64_t columns) {
  const int64_t lanes = Width<T>::kLanes;
  Vector<T> sums[kRows][kPanelVectors];
  const T* rows[kRows];
  LLTM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    rows[r] = p.a + r * p.row_step;
    LLTM_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = Vector<T>();
  }
  const T* b = p.packed;
  int64_t at = 0;
  for (int64_t k = 0; k < p.inner; ++k) {
    Vector<T> factors[kPanelVectors];
    LLTM_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) load_vector(b + v * lanes, &factors[v]);
    LLTM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const T factor = rows[r][at];
      LLTM_UNROLL
      for (int v = 0; v < kPanelVectors; ++v) sums[r][v] += factors[v] * factor;
    }
    b += PanelWidth<T>::kColumns;
    at += p.column_step;
  }
  LLTM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    LLTM_UNROLL
    for (int v = 0; v < kPanelVectors; ++v) {
      T* const c = p.c + r * p.c_row_step + v * lanes;
      const int64_t left = columns - v * lanes;
      Vector<T> before;
      if (left >= lanes) {
        if (p.adds) {
          load_vector(c, &before);
          sums[r][v] += before;
        }
        store_vector(sums[r][v], c);
      } else if (left > 0) {
        if (p.adds) {
          load_lanes(c, left, &before);
          sums[r][v] += before;
        }
        store_lanes(sums[r][v], left, c);
      }
    }
  }
}

// The rows from `row` on, kRows at a time; returns the first that is left.
template <int kRows, typename T>
int64_t multiply_tiles(PackedProduct<T> p, int64_t row) {
  const int64_t columns = p.columns < PanelWidth<T>::kColumns ? p.columns : PanelWidth<T>::kColumns;
  p.a += row * p.row_step;
  p.c += row * p.c_row_step;
  for (; row + kRows <= p.rows; row += kRows) {
    multiply_tile<kRows>(p, columns);
    p.a += kRows * p.row_step;
    p.c += kRows * p.c_row_step;
  }
  return row;
}

// All rows with the first panel of p.packed.
template <typename T>
void multiply_panel(const PackedProduct<T>& p) {
  int64_t row = kTileRows == 8 ? multiply_tiles<kTileRows>(p, 0) : 0;
  row = multiply_tiles<4>(p, row);
  row = multiply_tiles<2>(p, row);
  multiply_tiles<1>(p, row);
}

// Calls with_panel(part, first, column) for every part of k and every panel, where `part` lacks
// packed. With K == 0 there is one part, of nothing.
template <typename T, typename WithPanel>
void for_panels(const PackedProduct<T>& all, const WithPanel& with_panel) {
  PackedProduct<T> part = all;
  if (all.inner == 0) part.row_step = 0;  // a may be null
  int64_t first = 0;
  do {
    part.inner = all.inner - first < kInnerPart ? all.inner - first : kInnerPart;
    part.a = first > 0 ? all.a + first * all.column_step : all.a;
    for (int64_t column = 0; column < all.columns; column += PanelWidth<T>::kColumns) {
      part.columns = all.columns - column;
      part.c = all.c + column;
      with_panel(part, first, column);
    }
    part.adds = 1;
    first += kInnerPart;
  } while (first < all.inner);
}

template <typename T>
void multiply_packed_loop(const PackedProduct<T>& all) {
  for_panels(all, [&](PackedProduct<T>& part, int64_t first, int64_t column) {
    if (part.inner > 0) {
      part.packed = all.packed + column * all.inner + first * PanelWidth<T>::kColumns;
    }
    multiply_panel(part);
  });
}

// A transpose is read in squares: a row of it is a column of what lies in memory.
const int64_t kSquare = 16;

// The first panel of b.
template <typename T>
void pack_panel(const MatrixPacking<T>& a) {
  const int64_t panel = PanelWidth<T>::kColumns;
  const int64_t columns = a.columns < panel ? a.columns : panel;
  if (columns < panel) memset(a.packed, 0, static_cast<size_t>(a.inner * panel) * sizeof(T));
  if (a.column_step == 1) {
    for (int64_t k = 0; k < a.inner; ++k) {
      memcpy(a.packed + k * panel, a.b + k * a.row_step, static_cast<size_t>(columns) * sizeof(T));
    }
    return;
  }
  for (int64_t first = 0; first < a.inner; first += kSquare) {
    const int64_t end = a.inner - first < kSquare ? a.inner : first + kSquare;
    for (int64_t column = 0; column < columns; ++column) {
      const T* const from = a.b + column * a.column_step;
      for (int64_t k = first; k < end; ++k) a.packed[k * panel + column] = from[k * a.row_step];
    }
  }
}

template <typename T>
void pack_matrix_loop(const MatrixPacking<T>& all) {
  const int64_t panel = PanelWidth<T>::kColumns;
  if (all.inner == 0) return;
  MatrixPacking<T> part = all;
  for (int64_t column = 0; column < all.columns; column += panel) {
    part.columns = all.columns - column;
    part.b = all.b + column * all.column_step;
    part.packed = all.packed + column * all.inner;
    pack_panel(part);
  }
}

// Packs a panel's part when it is needed: nothing is allocated, and it is in a cache.
template <typename T>
void multiply_loop(const MatrixProduct<T>& all) {
  alignas(64) T panel[kInnerPart * PanelWidth<T>::kColumns];
  for_panels(all.product, [&](PackedProduct<T>& part, int64_t first, int64_t column) {
    MatrixPacking<T> packing = all.b;
    packing.inner = part.inner;
    packing.columns = part.columns;
    packing.packed = panel;
    if (part.inner > 0) {
      packing.b += first * packing.row_step + column * packing.column_step;
      pack_panel(packing);
    }
    part.packed = panel;
    multiply_panel(part);
  });
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_MATRIX_HOST_LOOPS_H_
