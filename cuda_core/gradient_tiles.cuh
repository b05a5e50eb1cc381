// What a block of gradient_products.cu computes: a tile of d_x, which is [d_old_h, d_input], or of
// d_weights. A thread works on 4 by 4 sums, so that two loads of four values feed 16
// multiplications.
#ifndef LLTM_GRADIENT_TILES_CUH_
#define LLTM_GRADIENT_TILES_CUH_

#include <cuda_runtime.h>

#include "lltm_products.h"
#include "packed.cuh"

namespace lltm {
namespace {

const int kWarp = 32;
const int kWarps = 8;
const int kThreads = kWarp * kWarps;
const int kLanes = 8;                           // threads beside each other in a tile
const int kColumns = kLanes * kGroup;           // of a tile
const int kRows = 4;                            // of a tile of d_x
const int kGates = kThreads / kLanes * kGroup;  // of a tile of d_weights
const int kSplit = 4;                           // threads that share a sum over the batch

template <typename T>
__device__ __forceinline__ void clear(T (&sums)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = T(0);
  }
}

// 4 rows, 32 columns. 32 groups of threads share the sums over the 3H gates; `parts` is where they
// meet.
template <bool kAligned, typename S>
__device__ __forceinline__ void d_x_tile(const GradientProducts<S>& a, int64_t row, int64_t column,
                                         ComputeType<S>* parts) {
  typedef ComputeType<S> T;
  const int kAtOnce = 2;  // groups of four gates
  const int64_t H = a.state_size;
  const int64_t K = H + a.input_features;
  const int64_t N = 3 * H;
  if (column >= H ? !a.d_input : column + kColumns <= H && !a.d_old_h) return;
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t k = column + lane % kLanes * kGroup;

  T sums[kRows][kGroup];
  clear(sums);
  for (int64_t base = 0; base < N; base += kAtOnce * kGates) {
    Packed<S> d[kAtOnce][kRows];
    Packed<S> w[kAtOnce][kGroup];
#pragma unroll
    for (int part = 0; part < kAtOnce; ++part) {
      const int64_t n = base + part * kGates + threadIdx.x / kLanes * kGroup;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const bool inside = row + r < a.batch_size;
        const Line<S> line = {a.d_gates + (inside ? row + r : 0) * N};
        load_group<kAligned>(d[part][r], line, n, inside ? N : 0);
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const bool inside = n + i < N;
        const Line<S> line = {a.weights + (inside ? n + i : 0) * K};
        load_group<kAligned>(w[part][i], line, k, inside ? K : 0);
      }
    }
#pragma unroll
    for (int part = 0; part < kAtOnce; ++part) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int j = 0; j < kGroup; ++j) sums[r][j] += d[part][r][i] * w[part][i][j];
        }
      }
    }
  }

  // The four groups of a warp by shuffles, then the warps by shared memory.
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
#pragma unroll
      for (int distance = kLanes; distance < kWarp; distance *= 2) {
        sums[r][j] += __shfl_xor_sync(0xffffffffu, sums[r][j], distance);
      }
      if (lane < kLanes) parts[(warp * kRows + r) * kColumns + lane * kGroup + j] = sums[r][j];
    }
  }
  __syncthreads();
  const int r = threadIdx.x / kColumns;
  const int64_t x = column + threadIdx.x % kColumns;
  if (r >= kRows || row + r >= a.batch_size || x >= K) return;
  S* const line = x < H ? a.d_old_h : a.d_input;
  if (!line) return;
  T sum = parts[threadIdx.x];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) sum += parts[i * kRows * kColumns + threadIdx.x];
  store(sum, x < H ? line + (row + r) * H + x : line + (row + r) * (K - H) + x - H);
}

// 128 gates, 32 columns; with the first columns d_bias. If kShare threads share the sums over the
// batch it is so many times fewer gates.
template <bool kAligned, int kShare, typename S>
__device__ __forceinline__ void d_weights_tile(const GradientProducts<S>& a, int64_t gate,
                                               int64_t column, ComputeType<S>* parts) {
  typedef ComputeType<S> T;
  const int kAtOnce = 4;  // rows
  const int kPlaces = kThreads / kShare;
  const int64_t H = a.state_size;
  const int64_t K = H + a.input_features;
  const int64_t N = 3 * H;
  const int place = threadIdx.x % kPlaces;
  const int split = threadIdx.x / kPlaces;
  const int64_t n = gate + place / kLanes * kGroup;
  const int64_t k = column + place % kLanes * kGroup;

  T sums[kGroup][kGroup];
  T bias[kGroup] = {T(0), T(0), T(0), T(0)};
  clear(sums);
  for (int64_t base = split * kAtOnce; base < a.batch_size; base += kShare * kAtOnce) {
    Packed<S> d[kAtOnce];
    Packed<S> x[kAtOnce];
#pragma unroll
    for (int part = 0; part < kAtOnce; ++part) {
      const bool inside = base + part < a.batch_size;
      const int64_t row = inside ? base + part : 0;
      const Line<S> line = {a.d_gates + row * N};
      const Row<S> x_line = {a.old_h + row * H, H, a.input + row * a.input_features};
      load_group<kAligned>(d[part], line, n, inside ? N : 0);
      load_group<kAligned>(x[part], x_line, k, inside && a.d_weights ? K : 0);
    }
#pragma unroll
    for (int part = 0; part < kAtOnce; ++part) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        bias[i] += d[part][i];
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sums[i][j] += d[part][i] * x[part][j];
      }
    }
  }

  if (kShare > 1) {
    // The others' sums go to the first thread's: of each of its gates four, and that of the bias.
    const int kOfSplit = kGroup * (kGroup + 1) * kPlaces;
#pragma unroll
    for (int i = 0; split > 0 && i < kGroup; ++i) {
      T* const to = parts + (split - 1) * kOfSplit + i * (kGroup + 1) * kPlaces + place;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) to[j * kPlaces] = sums[i][j];
      to[kGroup * kPlaces] = bias[i];
    }
    __syncthreads();
    if (split > 0) return;
#pragma unroll
    for (int other = 0; other < kShare - 1; ++other) {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        const T* const from = parts + other * kOfSplit + i * (kGroup + 1) * kPlaces + place;
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sums[i][j] += from[j * kPlaces];
        bias[i] += from[kGroup * kPlaces];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
    if (n + i >= N) return;
    if (a.d_bias && k == 0) store(bias[i], a.d_bias + n + i);
    if (a.d_weights) store_group<kAligned>(sums[i], a.d_weights + (n + i) * K, k, K);
  }
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_GRADIENT_TILES_CUH_
