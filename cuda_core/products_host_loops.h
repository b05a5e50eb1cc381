// The loops of the host products, compiled for each instruction set as those of cell_host_loops.h.
//
// They are for few rows of the batch: the weights, which are then most of the memory traffic, are
// read once, and d_weights written once. Sums have a fixed order.
#ifndef LLTM_PRODUCTS_HOST_LOOPS_H_
#define LLTM_PRODUCTS_HOST_LOOPS_H_

#include "host_vector.h"
#include "products_host.h"

namespace lltm {
namespace {

// With 32 registers blocks are larger.
const bool kManyRegisters = LLTM_VECTOR_BYTES == 64;

// As many rows of the weights as stay in first-level cache while all of the batch passes by.
const int64_t kGroupRows = 8;

// One of the two column blocks of the weights, and what it is multiplied with.
template <typename T>
struct ColumnBlock {
  int64_t columns;
  const T* x;        // [B, columns]: old_h or input
  const T* weights;  // [3H, columns], `stride` from row to row
  int64_t stride;
};

// sums[b * kRows + r] += the dot product of row b of x and row r of the weights, lane by lane.
template <int kBatch, int kRows, typename T>
LLTM_INLINE void add_dots(const ColumnBlock<T>& block, int64_t b0, int64_t row, Vector<T>* sums) {
  const int64_t lanes = Width<T>::kLanes;
  const int64_t columns = block.columns;
  const T* x = block.x + b0 * columns;
  const T* weights = block.weights + row * block.stride;
  Vector<T> xs[kBatch], w;
  int64_t k = 0;
  for (; k + lanes <= columns; k += lanes) {
    LLTM_UNROLL
    for (int b = 0; b < kBatch; ++b) load_vector(x + b * columns + k, &xs[b]);
    LLTM_UNROLL
    for (int r = 0; r < kRows; ++r) {
      load_vector(weights + r * block.stride + k, &w);
      LLTM_UNROLL
      for (int b = 0; b < kBatch; ++b) sums[b * kRows + r] += xs[b] * w;
    }
  }
  if (k == columns) return;
  LLTM_UNROLL
  for (int b = 0; b < kBatch; ++b) load_rest(x + b * columns, columns, &xs[b]);
  LLTM_UNROLL
  for (int r = 0; r < kRows; ++r) {
    load_rest(weights + r * block.stride, columns, &w);
    LLTM_UNROLL
    for (int b = 0; b < kBatch; ++b) sums[b * kRows + r] += xs[b] * w;
  }
}

template <int kBatch, int kRows, typename T>
void gate_tile(const ColumnBlock<T>* blocks, int64_t b0, int64_t row, T* gates, int64_t stride) {
  const int kSums = kBatch * kRows;
  const int kLanes = Width<T>::kLanes;
  const int kTogether = kSums < kLanes ? kSums : kLanes;
  Vector<T> sums[kSums];
  LLTM_UNROLL
  for (int i = 0; i < kSums; ++i) sums[i] = Vector<T>();
  add_dots<kBatch, kRows>(blocks[0], b0, row, sums);
  add_dots<kBatch, kRows>(blocks[1], b0, row, sums);
  T results[kSums + kLanes];
  LLTM_UNROLL
  for (int i = 0; i < kSums; i += kTogether) {
    LaneSums<T, kTogether, kLanes>::add(sums + i, results + i);
  }
  for (int b = 0; b < kBatch; ++b) {
    for (int r = 0; r < kRows; ++r) gates[(b0 + b) * stride + row + r] = results[b * kRows + r];
  }
}

template <int kBatch, typename T>
void gate_rows(const ColumnBlock<T>* blocks, int64_t b0, int64_t row, int64_t rows, T* gates,
               int64_t stride) {
  const int kRows = kBatch == 1 || (kBatch == 2 && kManyRegisters) ? 8 : 4;
  const int64_t end = row + rows;
  for (; row + kRows <= end; row += kRows) {
    gate_tile<kBatch, kRows>(blocks, b0, row, gates, stride);
  }
  for (; row < end; ++row) gate_tile<kBatch, 1>(blocks, b0, row, gates, stride);
}

template <typename T>
void gate_products_loop(const GateProducts<T>& a) {
  const int64_t H = a.state_size;
  const int64_t rows = 3 * H;
  const int64_t width = H + a.input_features;
  const ColumnBlock<T> blocks[2] = {{H, a.old_h, a.weights, width},
                                    {a.input_features, a.input, a.weights + H, width}};
  const int kBatch = kManyRegisters ? 4 : 2;
  for (int64_t row = 0; row < rows; row += kGroupRows) {
    const int64_t group = rows - row < kGroupRows ? rows - row : kGroupRows;
    int64_t b = 0;
    for (; b + kBatch <= a.batch_size; b += kBatch) {
      gate_rows<kBatch>(blocks, b, row, group, a.gates, rows);
    }
    if (b + 2 <= a.batch_size) {
      gate_rows<2>(blocks, b, row, group, a.gates, rows);
      b += 2;
    }
    if (b < a.batch_size) gate_rows<1>(blocks, b, row, group, a.gates, rows);
  }
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_PRODUCTS_HOST_LOOPS_H_
