// The gradients of a sequence's weights and bias, for small sizes, where the products and sums of a
// library take longer to launch than to run. They are sums over all rows: each block adds up the
// part of some of them for a tile, and a second launch adds the parts, in their order: the same
// bits in every run.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "lltm.h"
#include "parameter_gradient_rows.cuh"

namespace lltm {
namespace {

// Of the blocks that add the parts.
const int kValues = 32;
const int kSharers = kThreads / kValues;

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads, 2)
    parts_kernel(const SequenceGradients<S> a, const GradientParts parts) {
  typedef ComputeType<S> T;
  __shared__ Stage<T> stages[2];
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t K = H + a.input_features;
  const int64_t tile = blockIdx.x % parts.tiles;
  const int64_t part = blockIdx.x / parts.tiles;
  const int64_t gate = tile / parts.columns * kGates;
  const int64_t column = tile % parts.columns * kColumns;
  const int64_t begin = part * parts.rows;
  const int64_t end = begin + parts.rows < a.rows ? begin + parts.rows : a.rows;
  const int beside = threadIdx.x % kBeside * kGroup;
  const int below = threadIdx.x / kBeside * kGroup;

  if (!a.d_weights && column > 0) return;  // the first column has d_bias

  T sums[kGroup][2][kGroup] = {};
  T bias[kGroup] = {};
  Bringer<kAligned, S> bringer(a, gate, column);
  bringer.ask(begin, end);
  int buffer = 0;
  for (int64_t row = begin; row < end; row += Stage<T>::kRows, buffer ^= 1) {
    Stage<T>& stage = stages[buffer];
    bringer.put(stage, bias);
    __syncthreads();
    bringer.ask(row + Stage<T>::kRows, end);
    if (!a.d_weights) continue;
#pragma unroll
    for (int r = 0; r < Stage<T>::kRows; ++r) {
      T d[kGroup], x[2][kGroup];
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        d[i] = stage.d_gates[r][below + i];
        x[0][i] = stage.values[r][beside + i];
        x[1][i] = stage.values[r][kColumns / 2 + beside + i];
      }
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) {
          sums[i][0][j] += d[i] * x[0][j];
          sums[i][1][j] += d[i] * x[1][j];
        }
      }
    }
  }

  T* const to = a.workspace + part * parts.values;
#pragma unroll
  for (int i = 0; i < kGroup; ++i) {
    if (gate + below + i >= 3 * H) break;
    T* const line = to + (gate + below + i) * K;
    store_group<kAligned>(sums[i][0], line, column + beside, K);
    store_group<kAligned>(sums[i][1], line, column + kColumns / 2 + beside, K);
  }
  if (column > 0) return;
  // The others' sums of the same gates, whose rows these threads brought, in shared memory.
  __syncthreads();
  T(*const shared)[kGates] = stages[0].d_gates;
  const int line = Bringer<kAligned, S>::gate_row(0);
  if (line < Stage<T>::kRows) {
#pragma unroll
    for (int j = 0; j < kGroup; ++j) {
      shared[line][Bringer<kAligned, S>::gate_group() * kGroup + j] = bias[j];
    }
  }
  __syncthreads();
  if (threadIdx.x >= kGates || gate + threadIdx.x >= 3 * H) return;
  T sum = 0;
#pragma unroll
  for (int r = 0; r < Stage<T>::kRows; ++r) sum += shared[r][threadIdx.x];
  to[3 * H * K + gate + threadIdx.x] = sum;
}

// A warp has a value for each lane, and of its parts every eighth.
template <typename S>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const SequenceGradients<S> a, const GradientParts parts) {
  typedef ComputeType<S> T;
  const int kAtOnce = 8;
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

template <typename S>
int32_t launch(const SequenceGradients<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || a.state_size == 0 || (!a.d_weights && !a.d_bias)) return status;
  const GradientParts parts(a.rows, a.batch_size, a.state_size, a.input_features);
  const int64_t blocks = (parts.values + kValues - 1) / kValues;
  if (blocks > INT32_MAX) return -3;
  if (parts.count > INT32_MAX / parts.tiles) return -1;
  const unsigned grid = static_cast<unsigned>(parts.tiles * parts.count);
  const bool aligned = a.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.d_gates) && is_aligned(a.input) && is_aligned(a.h0) &&
                       is_aligned(a.output) && is_aligned(a.workspace);
  const int32_t first =
      aligned ? launch_dependent(parts_kernel<true>, grid, kThreads, stream, a, parts)
              : launch_dependent(parts_kernel<false>, grid, kThreads, stream, a, parts);
  if (first) return first;
  return launch_dependent(sum_kernel, static_cast<unsigned>(blocks), kThreads, stream, a, parts);
}

}  // namespace
}  // namespace lltm

int64_t lltm_sequence_gradients_workspace_cuda(int64_t rows, int64_t batch_size, int64_t state_size,
                                               int64_t input_features) noexcept {
  const lltm::GradientParts parts(rows, batch_size, state_size, input_features);
  return parts.count * parts.values;
}

#define LLTM_DEFINE_SEQUENCE_GRADIENTS(name, type, compute)                                        \
  int32_t lltm_sequence_gradients_cuda_##name(                                                     \
      int64_t rows, int64_t batch_size, int64_t state_size, int64_t input_features,                \
      int32_t reverse, const type* d_gates, const type* input, const type* h0, const type* output, \
      compute* workspace, type* d_weights, type* d_bias, CUstream_st* stream) noexcept {           \
    const lltm::SequenceGradients<type> arguments = {                                              \
        rows,  batch_size, state_size, input_features, reverse != 0, d_gates,                      \
        input, h0,         output,     workspace,      d_weights,    d_bias};                      \
    return lltm::launch(arguments, stream);                                                        \
  }

LLTM_DEFINE_SEQUENCE_GRADIENTS(float, float, float)
LLTM_DEFINE_SEQUENCE_GRADIENTS(double, double, double)
LLTM_DEFINE_SEQUENCE_GRADIENTS(half, lltm_half, float)
LLTM_DEFINE_SEQUENCE_GRADIENTS(bfloat16, lltm_bfloat16, float)
