// The products of the backward pass of a batch of one.
#ifndef LLTM_GRADIENT_LINES_H_
#define LLTM_GRADIENT_LINES_H_

#include "gradient_panel.h"

namespace lltm {
namespace {

// Some rows of the weights and of d_weights, of a batch of one; d_x is added to `sums`.
template <int kRows, typename T>
LLTM_INLINE void gradient_lines(const GradientBlock<T>& block, const T* d_gates, int64_t row,
                                T* LLTM_RESTRICT sums) {
  const int64_t columns = block.in.columns;
  const int64_t first = row * block.in.stride;
  if (block.d_x) {
    const T* LLTM_RESTRICT weights = block.in.weights + first;
    for (int64_t i = 0; i < columns; ++i) {
      T sum = T(0);
      LLTM_UNROLL
      for (int r = 0; r < kRows; ++r) sum += d_gates[row + r] * weights[r * block.in.stride + i];
      sums[i] += sum;
    }
  }
  for (int r = 0; block.d_weights && r < kRows; ++r) {
    T* LLTM_RESTRICT d_weights = block.d_weights + first + r * block.in.stride;
    const T* LLTM_RESTRICT x = block.in.x;
    for (int64_t i = 0; i < columns; ++i) d_weights[i] = d_gates[row + r] * x[i];
  }
}

// Rows of the weights whose products are summed apart: a single long sum would round worse.
const int64_t kLinesOfSum = 64;

// A batch of one: each element of the weights and of d_weights is touched once, for one product. So
// they stream by as they lie, while x and the sums stay in the first-level cache. From the last sum
// to the first: the forward pass read the last rows last, and where the weights and d_weights
// together outgrow the second-level cache the first ones are gone in any order.
template <typename T>
void gradients_of_one(const GradientBlock<T> (&blocks)[2], const T* d_gates, int64_t rows) {
  alignas(64) T sums[2][kPanelBytes / sizeof(T)];
  int64_t end = rows;
  do {
    const bool is_first = end == rows;
    const int64_t begin = end > 0 ? (end - 1) / kLinesOfSum * kLinesOfSum : 0;
    int64_t row = begin;
    for (int i = 0; i < 2; ++i) {
      for (int64_t n = 0; n < blocks[i].in.columns; ++n) sums[i][n] = T(0);
    }
    // Without d_weights each load of the weights would wait for one of a sum.
    for (; !blocks[0].d_weights && row + kGradientRows <= end; row += kGradientRows) {
      for (int i = 0; i < 2; ++i) gradient_lines<kGradientRows>(blocks[i], d_gates, row, sums[i]);
    }
    for (; row < end; ++row) {
      for (int i = 0; i < 2; ++i) gradient_lines<1>(blocks[i], d_gates, row, sums[i]);
    }
    for (int i = 0; i < 2; ++i) {
      T* const d_x = blocks[i].d_x;
      for (int64_t n = 0; d_x && n < blocks[i].in.columns; ++n) {
        d_x[n] = is_first ? sums[i][n] : d_x[n] + sums[i][n];
      }
    }
    end = begin;
  } while (end > 0);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_GRADIENT_LINES_H_
