// All gradients of the cell's products with its weights in one launch; for small sizes, where four
// products and a sum of a library's take longer to launch than to run.
//
// Blocks are of two kinds. Some compute a tile of d_x, which is [d_old_h, d_input]: 4 rows, 32
// columns, whose sums over the 3H gates 32 groups of threads share. The others compute a tile of
// d_weights: 32 gates, 32 columns, whose sums over the batch 4 groups share; and those of the first
// columns d_bias. A thread works on 4 by 4 sums, so that two loads of four values feed 16
// multiplications. Sums are added in an order of their own: the same bits in every run.
#include <cuda_runtime.h>

#include "lltm.h"
#include "lltm_math.h"
#include "lltm_products.h"
#include "packed.cuh"

namespace lltm {
namespace {

const int kWarp = 32;
const int kWarps = 8;
const int kThreads = kWarp * kWarps;
const int kLanes = 8;                                      // threads beside each other in a tile
const int kColumns = kLanes * kGroup;                      // of a tile
const int kRows = 4;                                       // of a tile of d_x
const int kGates = 32;                                     // of a tile of d_weights
const int kSplit = kThreads / kLanes / (kGates / kGroup);  // of its rows

struct Tiles {
  int64_t columns;  // tiles beside each other in [old_h, input]
  int64_t d_x;      // tiles of d_x
  int64_t all;
};

template <typename S>
Tiles tiles_of(const GradientProducts<S>& a) {
  const int64_t columns = (a.state_size + a.input_features + kColumns - 1) / kColumns;
  const int64_t rows = a.d_old_h || a.d_input ? (a.batch_size + kRows - 1) / kRows : 0;
  const int64_t gates = (3 * a.state_size + kGates - 1) / kGates;
  return {columns, rows * columns,
          rows * columns + gates * (a.d_weights ? columns : (a.d_bias ? 1 : 0))};
}

template <typename T>
__device__ __forceinline__ void clear(T (&sums)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[i][j] = T(0);
  }
}

template <bool kAligned, typename S>
__device__ __forceinline__ void d_x_tile(const GradientProducts<S>& a, int64_t row,
                                         int64_t column) {
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
  const int kRound = kThreads / kLanes * kGroup;  // gates
  for (int64_t base = 0; base < N; base += kAtOnce * kRound) {
    Packed<S> d[kAtOnce][kRows];
    Packed<S> w[kAtOnce][kGroup];
#pragma unroll
    for (int part = 0; part < kAtOnce; ++part) {
      const int64_t n = base + part * kRound + threadIdx.x / kLanes * kGroup;
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
  __shared__ T parts[kWarps][kRows][kColumns];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
#pragma unroll
      for (int distance = kLanes; distance < kWarp; distance *= 2) {
        sums[r][j] += __shfl_xor_sync(0xffffffffu, sums[r][j], distance);
      }
      if (lane < kLanes) parts[warp][r][lane * kGroup + j] = sums[r][j];
    }
  }
  __syncthreads();
  const int r = threadIdx.x / kColumns;
  const int64_t x = column + threadIdx.x % kColumns;
  if (r >= kRows || row + r >= a.batch_size || x >= K) return;
  S* const line = x < H ? a.d_old_h : a.d_input;
  if (!line) return;
  T sum = parts[0][r][threadIdx.x % kColumns];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) sum += parts[i][r][threadIdx.x % kColumns];
  store(sum, x < H ? line + (row + r) * H + x : line + (row + r) * (K - H) + x - H);
}

template <bool kAligned, typename S>
__device__ __forceinline__ void d_weights_tile(const GradientProducts<S>& a, int64_t gate,
                                               int64_t column) {
  typedef ComputeType<S> T;
  const int kAtOnce = 4;  // rows
  const int64_t H = a.state_size;
  const int64_t K = H + a.input_features;
  const int64_t N = 3 * H;
  const int place = threadIdx.x % (kThreads / kSplit);
  const int split = threadIdx.x / (kThreads / kSplit);
  const int64_t n = gate + place / kLanes * kGroup;
  const int64_t k = column + place % kLanes * kGroup;

  T sums[kGroup][kGroup];
  T bias[kGroup] = {T(0), T(0), T(0), T(0)};
  clear(sums);
  for (int64_t base = split * kAtOnce; base < a.batch_size; base += kSplit * kAtOnce) {
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

  // The other groups' sums go to the first. The last of five is that of the bias.
  __shared__ T parts[kSplit - 1][kGroup][kGroup + 1][kThreads / kSplit];
  if (split > 0) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) parts[split - 1][i][j][place] = sums[i][j];
      parts[split - 1][i][kGroup][place] = bias[i];
    }
  }
  __syncthreads();
  if (split > 0) return;
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
#pragma unroll
    for (int other = 0; other < kSplit - 1; ++other) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sums[i][j] += parts[other][i][j][place];
      bias[i] += parts[other][i][kGroup][place];
    }
    if (n + i >= N) return;
    if (a.d_bias && k == 0) store(bias[i], a.d_bias + n + i);
    if (a.d_weights) store_group<kAligned>(sums[i], a.d_weights + (n + i) * K, k, K);
  }
}

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads, 2)
    kernel(const GradientProducts<S> a, const Tiles tiles) {
  const int64_t tile = blockIdx.x;
  if (tile < tiles.d_x) {
    d_x_tile<kAligned>(a, tile / tiles.columns * kRows, tile % tiles.columns * kColumns);
  } else {
    const int64_t rest = tile - tiles.d_x;
    const int64_t columns = a.d_weights ? tiles.columns : 1;
    d_weights_tile<kAligned>(a, rest / columns * kGates, rest % columns * kColumns);
  }
}

}  // namespace

template <typename S>
int32_t launch(const GradientProducts<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status) return status;
  const Tiles tiles = tiles_of(a);
  if (tiles.all == 0) return 0;
  if (tiles.all > INT32_MAX) return -1;
  const unsigned grid = static_cast<unsigned>(tiles.all);
  const bool aligned = a.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.d_gates) && is_aligned(a.input) && is_aligned(a.weights) &&
                       is_aligned(a.old_h) && is_aligned(a.d_weights);
  if (aligned) {
    kernel<true><<<grid, kThreads, 0, stream>>>(a, tiles);
  } else {
    kernel<false><<<grid, kThreads, 0, stream>>>(a, tiles);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

template int32_t launch(const GradientProducts<float>&, cudaStream_t);
template int32_t launch(const GradientProducts<double>&, cudaStream_t);
template int32_t launch(const GradientProducts<lltm_half>&, cudaStream_t);
template int32_t launch(const GradientProducts<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_GRADIENT_PRODUCTS(name, type)                                                \
  int32_t lltm_gradient_products_cuda_##name(                                                    \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* d_gates,       \
      const type* input, const type* weights, const type* old_h, type* d_input, type* d_weights, \
      type* d_bias, type* d_old_h, CUstream_st* stream) noexcept {                               \
    const lltm::GradientProducts<type> arguments = {                                             \
        batch_size, state_size, input_features, d_gates, input,  weights,                        \
        old_h,      d_input,    d_weights,      d_bias,  d_old_h};                               \
    return lltm::launch(arguments, stream);                                                      \
  }

LLTM_DEFINE_GRADIENT_PRODUCTS(float, float)
LLTM_DEFINE_GRADIENT_PRODUCTS(double, double)
LLTM_DEFINE_GRADIENT_PRODUCTS(half, lltm_half)
LLTM_DEFINE_GRADIENT_PRODUCTS(bfloat16, lltm_bfloat16)
