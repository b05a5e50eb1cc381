// The products of the backward pass: one pass over the weights and d_weights together.
#ifndef LLTM_GRADIENTS_HOST_LOOPS_H_
#define LLTM_GRADIENTS_HOST_LOOPS_H_

#include "gradient_lines.h"

namespace lltm {
namespace {

// A tile of the weights and of d_weights, with all of the batch: kRows rows and kVectors vectors of
// columns, which begin at weights[at[v]]. With kPartial the block has only `count` columns, fewer
// than a vector has lanes.
template <bool kWantsX, bool kWantsWeights, bool kPartial, int kRows, int kVectors, typename T>
LLTM_INLINE void gradient_tile(const GradientBlock<T>& block, Panel<T>& panel, int64_t vector,
                               const int64_t* at, int64_t next, int64_t count, bool adds) {
  const int64_t stride = block.in.stride;
  Vector<T> weights[kVectors][kRows], sums[kVectors][kRows];
  LLTM_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    LLTM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int64_t place = at[v] + r * stride;
      if (kWantsX) load_columns<kPartial>(block.in.weights + place, count, &weights[v][r]);
      sums[v][r] = Vector<T>();
      if (kWantsWeights && adds) {
        load_columns<kPartial>(block.d_weights + place, count, &sums[v][r]);
      }
    }
  }
  if (block.prefetches) {
    LLTM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      LLTM_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const int64_t place = next + r * stride + v * Width<T>::kLanes;
        if (kWantsX) prefetch(block.in.weights + place);
        if (kWantsWeights) prefetch(block.d_weights + place);
      }
    }
  }
  const int64_t step = panel.batch_size * Width<T>::kLanes;  // from vector to vector
  const T* factors = panel.d_gates;
  const T* x_place = panel.x + vector * step;
  T* d_x_place = panel.d_x + vector * step;
  for (int64_t b = 0; b < panel.batch_size; ++b) {
    if (kWantsWeights) {
      LLTM_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        Vector<T> x;
        load_vector(x_place + v * step, &x);
        LLTM_UNROLL
        for (int r = 0; r < kRows; ++r) sums[v][r] += x * factors[r];
      }
    }
    if (kWantsX) {
      LLTM_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        // Summed apart first: a single long sum would round worse.
        Vector<T> sum = weights[v][0] * factors[0], d_x;
        LLTM_UNROLL
        for (int r = 1; r < kRows; ++r) sum += weights[v][r] * factors[r];
        load_vector(d_x_place + v * step, &d_x);
        d_x += sum;
        store_vector(d_x, d_x_place + v * step);
      }
    }
    factors += kRows;
    x_place += Width<T>::kLanes;
    d_x_place += Width<T>::kLanes;
  }
  LLTM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    LLTM_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      if (kWantsWeights) {
        store_columns<kPartial>(sums[v][r], count, block.d_weights + at[v] + r * stride);
      }
    }
  }
}

template <bool kWantsX, bool kWantsWeights, int kRows, typename T>
void gradient_rows(const GradientBlock<T>& block, const PanelColumns<T>& columns, const T* d_gates,
                   int64_t d_gates_stride, int64_t row, bool adds, Panel<T>& panel) {
  for (int64_t b = 0; b < panel.batch_size; ++b) {
    memcpy(panel.d_gates + b * kRows, d_gates + b * d_gates_stride + row, kRows * sizeof(T));
  }
  const int64_t start = row * block.in.stride;
  const int64_t next_rows = start - kGradientRows * block.in.stride + columns.start(0);
  const int64_t whole = columns.whole_vectors();
  int64_t v = 0;
  for (; v + kGradientVectors <= whole; v += kGradientVectors) {
    int64_t at[kGradientVectors];
    for (int i = 0; i < kGradientVectors; ++i) at[i] = start + columns.start(v + i);
    const int64_t after = v + kGradientVectors;
    const int64_t next = after < whole ? start + columns.start(after) : next_rows;
    gradient_tile<kWantsX, kWantsWeights, false, kRows, kGradientVectors>(block, panel, v, at, next,
                                                                          0, adds);
  }
  for (; v < whole; ++v) {
    const int64_t at = start + columns.start(v);
    gradient_tile<kWantsX, kWantsWeights, false, kRows, 1>(block, panel, v, &at, next_rows, 0,
                                                           adds);
  }
  if (columns.rest() > 0) {
    const int64_t at = start + columns.start(v);
    gradient_tile<kWantsX, kWantsWeights, true, kRows, 1>(block, panel, v, &at, next_rows,
                                                          columns.rest(), adds);
  }
}

// From the last rows to the first, as gradients_of_one and for its reason.
template <bool kWantsX, bool kWantsWeights, typename T>
void gradient_panel(const GradientBlock<T>& block, const PanelColumns<T>& columns, const T* d_gates,
                    int64_t rows, bool adds, Panel<T>& panel) {
  pack_panel<T>(kWantsWeights ? block.in.x : nullptr, block.in.columns, columns, panel);
  int64_t end = rows;
  for (; end % kGradientRows > 0; --end) {
    gradient_rows<kWantsX, kWantsWeights, 1>(block, columns, d_gates, rows, end - 1, adds, panel);
  }
  for (; end > 0; end -= kGradientRows) {
    gradient_rows<kWantsX, kWantsWeights, kGradientRows>(block, columns, d_gates, rows,
                                                         end - kGradientRows, adds, panel);
  }
  if (kWantsX) unpack_d_x(panel, columns, block.d_x, block.in.columns);
}

// A batch of more rows than a panel holds is taken in parts, whose d_weights are added up.
template <bool kWantsX, bool kWantsWeights, typename T>
void gradient_block(GradientBlock<T> block, const T* d_gates, int64_t batch_size, int64_t rows) {
  const int64_t lanes = Width<T>::kLanes;
  Panel<T> panel;
  bool adds = false;
  do {
    panel.batch_size = batch_size < kBatchRows ? batch_size : kBatchRows;
    const int64_t bytes =
        int64_t(sizeof(T)) * lanes * (panel.batch_size > 0 ? panel.batch_size : 1);
    const int64_t width = kPanelBytes / bytes * lanes;
    const bool overlaps = block.in.columns >= lanes && !adds;
    for (int64_t first = 0; first < block.in.columns; first += width) {
      const int64_t left = block.in.columns - first;
      const PanelColumns<T> columns = {first, first + (left < width ? left : width), overlaps};
      gradient_panel<kWantsX, kWantsWeights>(block, columns, d_gates, rows, adds, panel);
    }
    batch_size -= panel.batch_size;
    d_gates += panel.batch_size * rows;
    if (kWantsX) block.d_x += panel.batch_size * block.in.columns;
    if (kWantsWeights) block.in.x += panel.batch_size * block.in.columns;
    adds = true;
  } while (batch_size > 0);
}

template <typename T>
void gradients_of_many(const GradientBlock<T> (&blocks)[2], const T* d_gates, int64_t batch_size,
                       int64_t rows) {
  for (const GradientBlock<T>& block : blocks) {
    if (block.d_x && block.d_weights) {
      gradient_block<true, true>(block, d_gates, batch_size, rows);
    } else if (block.d_x) {
      gradient_block<true, false>(block, d_gates, batch_size, rows);
    } else if (block.d_weights) {
      gradient_block<false, true>(block, d_gates, batch_size, rows);
    }
  }
}

template <typename T>
void sum_rows(const T* d_gates, int64_t batch_size, int64_t rows, T* LLTM_RESTRICT d_bias) {
  for (int64_t n = 0; n < rows; ++n) d_bias[n] = T(0);
  for (int64_t b = 0; b < batch_size; ++b) {
    for (int64_t n = 0; n < rows; ++n) d_bias[n] += d_gates[b * rows + n];
  }
}

template <typename T>
void gradient_products_loop(const GradientProducts<T>& a) {
  const int64_t H = a.state_size;
  const int64_t width = H + a.input_features;
  // What has no elements is not wanted: its factors may be null.
  T* const d_weights = H > 0 ? a.d_weights : nullptr;
  const bool has_rows = a.batch_size > 0;
  // Beyond second-level cache memory has to be asked for ahead of time.
  const bool prefetches = 3 * H * width > int64_t(512 * 1024 / sizeof(T));
  const GradientBlock<T> blocks[2] = {
      {{H, a.old_h, a.weights, width}, has_rows ? a.d_old_h : nullptr, d_weights, prefetches},
      {{a.input_features, a.input, a.weights ? a.weights + H : nullptr, width},
       has_rows ? a.d_input : nullptr,
       d_weights ? d_weights + H : nullptr,
       prefetches}};
  const int64_t widest = kPanelBytes / sizeof(T);
  if (a.batch_size == 1 && H <= widest && a.input_features <= widest) {
    gradients_of_one(blocks, a.d_gates, 3 * H);
  } else {
    gradients_of_many(blocks, a.d_gates, a.batch_size, 3 * H);
  }
  if (a.d_bias) sum_rows(a.d_gates, a.batch_size, 3 * H, a.d_bias);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_GRADIENTS_HOST_LOOPS_H_
