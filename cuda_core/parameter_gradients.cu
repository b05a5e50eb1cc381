// The gradients of a sequence's weights and bias, for small sizes, where the products and sums of a
// library take longer to launch than to run. They are sums over all rows: each block adds up the
// part of some of them for a tile, and a second launch adds the parts, in their order: the same
// bits in every run.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "lltm.h"
#include "lltm_parameter_gradients.h"
#include "product_tiles.cuh"

namespace lltm {
namespace {

// Of the blocks that add the parts.
const int kSumThreads = 256;
const int kValues = 32;

static_assert(kTile == kGradientTile, "parts are counted in tiles");

// A row of [old_h, input]. The first step's old h is h0, or zero.
template <typename S>
struct OldRow {
  const S* old_h;  // or null
  int64_t state_size;
  const S* input;
  __device__ __forceinline__ const S* operator()(int64_t k) const {
    if (k >= state_size) return input + (k - state_size);
    return old_h ? old_h + k : reinterpret_cast<const S*>(kZeros);
  }
};
template <typename S>
struct OldRows {
  const SequenceGradients<S>& a;
  __device__ __forceinline__ OldRow<S> operator()(int64_t row) const {
    OldRow<S> line = {nullptr, a.state_size, a.input + row * a.input_features};
    const int64_t old = a.reverse ? row + a.batch_size : row - a.batch_size;
    if (old >= 0 && old < a.rows) {
      line.old_h = a.output + old * a.state_size;
    } else if (a.h0) {
      line.old_h = a.h0 + (a.reverse ? old - a.rows : row) * a.state_size;
    }
    return line;
  }
};

template <typename Tile, bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads, sizeof(ComputeType<S>) == 8 ? 2 : 4)
    parts_kernel(const SequenceGradients<S> a, const GradientParts parts) {
  typedef ComputeType<S> T;
  __shared__ Panel<T> left[2];
  __shared__ Panel<T> right[2];
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t K = H + a.input_features;
  const int64_t tile_number = blockIdx.x % parts.tiles;
  const int64_t part = blockIdx.x / parts.tiles;
  const int64_t gate = tile_number / parts.columns * kTile;
  const int64_t column = tile_number % parts.columns * kTile;
  const int64_t begin = part * parts.rows;
  const int64_t end = begin + parts.rows < a.rows ? begin + parts.rows : a.rows;
  if (!a.d_weights && column > 0) return;  // the first column has d_bias

  Tile tile;
  T bias[kGroup] = {};
  typedef Bringer<false, kAligned, S, MatrixLines<S>> Gates;
  Gates d_gates(MatrixLines<S>{a.d_gates, 3 * H}, gate, 3 * H);
  Bringer<false, kAligned, S, OldRows<S>> values(OldRows<S>{a}, column, K);
  d_gates.ask(begin, end);
  values.ask(begin, end);
  int buffer = 0;
  for (int64_t row = begin; row < end; row += Panel<T>::kDepth, buffer ^= 1) {
    d_gates.add_to(bias);
    d_gates.put(left[buffer], &Tile::operand);
    values.put(right[buffer], &Tile::operand);
    __syncthreads();
    d_gates.ask(row + Panel<T>::kDepth, end);
    values.ask(row + Panel<T>::kDepth, end);
    if (a.d_weights) tile.multiply(left[buffer], right[buffer]);
  }

  T* const to = a.workspace + part * parts.values;
  tile.give([&](int below, int beside, const T(&sums)[kGroup]) {
    if (gate + below >= 3 * H) return;
    store_group<kAligned>(sums, to + (gate + below) * K, column + beside, K);
  });
  if (column > 0) return;
  // The others' sums of the same gates, whose rows these threads brought, in shared memory.
  const int kSharers = kThreads * kGroup / kTile;
  __shared__ T shared[kSharers][kTile];
#pragma unroll
  for (int j = 0; j < kGroup; ++j) {
    shared[Gates::line_of(0)][Gates::group() * kGroup + j] = bias[j];
  }
  __syncthreads();
  if (threadIdx.x >= kTile || gate + threadIdx.x >= 3 * H) return;
  T sum = 0;
#pragma unroll
  for (int r = 0; r < kSharers; ++r) sum += shared[r][threadIdx.x];
  to[3 * H * K + gate + threadIdx.x] = sum;
}

// A warp has a value for each lane, and of its parts every eighth.
template <typename S>
__global__ void __launch_bounds__(kSumThreads)
    sum_kernel(const SequenceGradients<S> a, const GradientParts parts) {
  typedef ComputeType<S> T;
  const int kAtOnce = 8;
  const int kSharers = kSumThreads / kValues;
  __shared__ T shared[kSharers][kValues];
  await_earlier_kernels();
  const int lane = threadIdx.x % kValues;
  const int sharer = threadIdx.x / kValues;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kValues + lane;
  const bool inside = i < parts.values;
  const T* const from = a.workspace + (inside ? i : 0);
  T sum = 0;
  for (int64_t part = sharer; part < parts.count; part += kAtOnce * kSharers) {
    T values[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      const int64_t at = part + p * kSharers;
      values[p] = at < parts.count ? from[at * parts.values] : T(0);
    }
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) sum += values[p];
  }
  shared[sharer][lane] = sum;
  __syncthreads();
  if (sharer > 0 || !inside) return;
#pragma unroll
  for (int s = 1; s < kSharers; ++s) sum += shared[s][lane];
  const int64_t weights = 3 * a.state_size * (a.state_size + a.input_features);
  if (i < weights) {
    if (a.d_weights) store(sum, a.d_weights + i);
  } else if (a.d_bias) {
    store(sum, a.d_bias + i - weights);
  }
}

template <typename Tile, typename S>
int32_t launch(const SequenceGradients<S>& a, const GradientParts& parts, unsigned blocks,
               cudaStream_t stream) {
  const unsigned grid = static_cast<unsigned>(parts.tiles * parts.count);
  const bool aligned = a.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.d_gates) && is_aligned(a.input) && is_aligned(a.h0) &&
                       is_aligned(a.output) && is_aligned(a.workspace);
  const int32_t first =
      launch_dependent(aligned ? &parts_kernel<Tile, true, S> : &parts_kernel<Tile, false, S>, grid,
                       kThreads, stream, a, parts);
  if (first) return first;
  return launch_dependent(sum_kernel<S>, blocks, kSumThreads, stream, a, parts);
}

template <typename S>
int32_t launch(const SequenceGradients<S>& a, bool tf32, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || a.state_size == 0 || (!a.d_weights && !a.d_bias)) return status;
  const GradientParts parts(a.rows, a.batch_size, a.state_size, a.input_features);
  const int64_t blocks = (parts.values + kValues - 1) / kValues;
  if (blocks > INT32_MAX) return -3;
  if (parts.count > INT32_MAX / parts.tiles) return -1;
  const unsigned sums = static_cast<unsigned>(blocks);
  if (takes_fast_tile<S>(tf32)) return launch<typename Tiles<S>::Fast>(a, parts, sums, stream);
  return launch<typename Tiles<S>::Full>(a, parts, sums, stream);
}

}  // namespace
}  // namespace lltm

int64_t lltm_sequence_gradients_workspace_cuda(int64_t rows, int64_t batch_size, int64_t state_size,
                                               int64_t input_features) noexcept {
  const lltm::GradientParts parts(rows, batch_size, state_size, input_features);
  return parts.count * parts.values;
}

#define LLTM_DEFINE_SEQUENCE_GRADIENTS(name, type, compute)                                  \
  int32_t lltm_sequence_gradients_cuda_##name(                                               \
      int64_t rows, int64_t batch_size, int64_t state_size, int64_t input_features,          \
      int32_t reverse, int32_t tf32, const type* d_gates, const type* input, const type* h0, \
      const type* output, compute* workspace, type* d_weights, type* d_bias,                 \
      CUstream_st* stream) noexcept {                                                        \
    const lltm::SequenceGradients<type> arguments = {                                        \
        rows,  batch_size, state_size, input_features, reverse != 0, d_gates,                \
        input, h0,         output,     workspace,      d_weights,    d_bias};                \
    return lltm::launch(arguments, tf32 != 0, stream);                                       \
  }

LLTM_DEFINE_SEQUENCE_GRADIENTS(float, float, float)
LLTM_DEFINE_SEQUENCE_GRADIENTS(double, double, double)
LLTM_DEFINE_SEQUENCE_GRADIENTS(half, lltm_half, float)
LLTM_DEFINE_SEQUENCE_GRADIENTS(bfloat16, lltm_bfloat16, float)
