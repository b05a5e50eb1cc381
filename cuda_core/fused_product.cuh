// The product inside the fused kernels: sums over the columns of a row of some operand times
// columns of the weights.
//
// A block computes 4 units of 4 rows. Sixteen neighbouring threads share one unit of one row: each
// sums every sixteenth group of four columns, and shuffles add the sixteen sums. Operands come
// straight from the L1 cache, so that many loads are under way at once and nothing waits for a
// barrier.
#ifndef LLTM_FUSED_PRODUCT_CUH_
#define LLTM_FUSED_PRODUCT_CUH_

#include <cuda_runtime.h>

#include "packed.cuh"

namespace lltm {
namespace {

const int kUnits = 4;
const int kRows = 4;
const int kSplit = 16;
const int kThreads = kUnits * kRows * kSplit;
const int kBatch = 4;  // loads from each line that are under way at once

// Which unit of which row this thread works for, as one of kSplit.
struct Place {
  int64_t row;
  int64_t unit;
  int split;
  __device__ __forceinline__ explicit Place(int64_t unit_tiles)
      : row(blockIdx.x / unit_tiles * kRows + threadIdx.x / (kSplit * kUnits)),
        unit(blockIdx.x % unit_tiles * kUnits + threadIdx.x / kSplit % kUnits),
        split(threadIdx.x % kSplit) {}
};

// sums[n] = sum over k < K of x(k) * weights[n](k), in each of the kSplit threads.
template <bool kAligned, int kSums, typename S, typename X>
__device__ __forceinline__ void fused_product(ComputeType<S> (&sums)[kSums], int split, int64_t K,
                                              const X& x_line, const Line<S> (&weights)[kSums]) {
#pragma unroll
  for (int n = 0; n < kSums; ++n) sums[n] = ComputeType<S>(0);
  for (int64_t base = 0; base < K; base += kBatch * kSplit * kGroup) {
    Packed<S> x[kBatch];
    Packed<S> w[kBatch][kSums];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t k = base + (b * kSplit + split) * kGroup;
      load_group<kAligned>(x[b], x_line, k, K);
#pragma unroll
      for (int n = 0; n < kSums; ++n) load_group<kAligned>(w[b][n], weights[n], k, K);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int n = 0; n < kSums; ++n) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) sums[n] += x[b][i] * w[b][n][i];
      }
    }
  }
#pragma unroll
  for (int distance = 1; distance < kSplit; distance *= 2) {
#pragma unroll
    for (int n = 0; n < kSums; ++n) {
      sums[n] += __shfl_xor_sync(0xffffffffu, sums[n], distance);
    }
  }
}

static inline int64_t unit_tiles_of(int64_t state_size) {
  return (state_size + kUnits - 1) / kUnits;
}

// -1, for argument batch_size, if they are too many.
static inline int64_t blocks_of(int64_t batch_size, int64_t unit_tiles) {
  const int64_t row_tiles = (batch_size + kRows - 1) / kRows;
  return row_tiles > INT32_MAX / unit_tiles ? -1 : row_tiles * unit_tiles;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_FUSED_PRODUCT_CUH_
