// The whole forward cell in one kernel: products, activations, state. For small sizes, where two
// matrix products and a pointwise kernel take longer to launch than to run.
//
// A block computes 4 units of 8 rows. Eight neighbouring threads share one unit of one row: each
// sums every eighth group of four columns for the three gates, and shuffles add the eight sums.
// Operands come straight from the L1 cache, so that many loads are under way at once and nothing
// waits for a barrier.
#include <cuda_runtime.h>

#include "lltm.h"
#include "lltm_cell.h"
#include "lltm_math.h"
#include "lltm_types.h"

namespace lltm {
namespace {

const int kUnits = 4;
const int kRows = 4;
const int kSplit = 16;
const int kThreads = kUnits * kRows * kSplit;
const int kGroup = 4;  // columns that a thread reads with one load
const int kBatch = 4;  // loads from each line that are under way at once

template <typename S>
struct __align__(kGroup * sizeof(S) < 16 ? kGroup * sizeof(S) : 16) Packed {
  S value[kGroup];
};

template <typename S>
struct Group {
  ComputeType<S> value[kGroup];
};

// Columns [k, k + 4) of a line of `end` columns; what lies beyond is 0. With kAligned a group is
// inside or outside as a whole, and begins where one load can take it.
template <bool kAligned, typename S>
__device__ __forceinline__ Group<S> load_group(const S* line, int64_t k, int64_t end) {
  Group<S> group;
  if (kAligned) {
    Packed<S> packed = {};
    if (k < end) packed = *reinterpret_cast<const Packed<S>*>(line + k);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) group.value[i] = load(packed.value[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      group.value[i] = k + i < end ? load(line[k + i]) : ComputeType<S>(0);
    }
  }
  return group;
}

// sums[gate] += line . weights[gate], over this thread's columns of the line.
template <bool kAligned, typename S>
__device__ __forceinline__ void add_products(const S* line, int64_t columns, const S* weights,
                                             int64_t gate_stride, int split,
                                             ComputeType<S> (&sums)[3]) {
  for (int64_t first = split * kGroup; first < columns; first += kBatch * kSplit * kGroup) {
    Group<S> x[kBatch];
    Group<S> w[kBatch][3];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t k = first + b * kSplit * kGroup;
      x[b] = load_group<kAligned>(line, k, columns);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) {
        w[b][gate] = load_group<kAligned>(weights + gate * gate_stride, k, columns);
      }
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) sums[gate] += x[b].value[i] * w[b][gate].value[i];
      }
    }
  }
}

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads) kernel(const CellFused<S> a, int64_t unit_tiles) {
  typedef ComputeType<S> T;
  const int64_t H = a.cell.state_size;
  const int64_t I = a.input_features;
  const int split = threadIdx.x % kSplit;
  const int64_t u = blockIdx.x % unit_tiles * kUnits + threadIdx.x / kSplit % kUnits;
  const int64_t r = blockIdx.x / unit_tiles * kRows + threadIdx.x / (kSplit * kUnits);
  const bool inside = r < a.cell.batch_size && u < H;

  T sums[3] = {T(0), T(0), T(0)};
  if (inside) {
    const S* const weights = a.weights + u * (H + I);
    const int64_t gate_stride = H * (H + I);
    add_products<kAligned>(a.old_h + r * H, H, weights, gate_stride, split, sums);
    add_products<kAligned>(a.input + r * I, I, weights + H, gate_stride, split, sums);
  }
#pragma unroll
  for (int distance = 1; distance < kSplit; distance *= 2) {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      sums[gate] += __shfl_xor_sync(0xffffffffu, sums[gate], distance);
    }
  }
  if (split != 0 || !inside) return;
  if (a.gates) {
    S* const gates = a.gates + r * 3 * H + u;
    store(sums[0], gates);
    store(sums[1], gates + H);
    store(sums[2], gates + 2 * H);
  }
  if (a.cell.bias) {
    sums[0] += load(a.cell.bias[u]);
    sums[1] += load(a.cell.bias[H + u]);
    sums[2] += load(a.cell.bias[2 * H + u]);
  }
  const int64_t at = r * H + u;
  const CellState<T> state = cell_forward(sums[0], sums[1], sums[2], load(a.cell.old_cell[at]));
  store(state.new_h, a.cell.new_h + at);
  store(state.new_cell, a.cell.new_cell + at);
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

}  // namespace

template <typename S>
int32_t launch(const CellFused<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a.cell)) return status;
  const int64_t unit_tiles = (a.cell.state_size + kUnits - 1) / kUnits;
  const int64_t blocks = (a.cell.batch_size + kRows - 1) / kRows * unit_tiles;
  if (blocks > INT32_MAX) return -1;
  const unsigned grid = static_cast<unsigned>(blocks);
  // Lines of old_h, input and weights then all begin at a multiple of 16 bytes, or of 8 for half
  // types, which read 8 at a time.
  const bool aligned = a.cell.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.old_h) && is_aligned(a.input) && is_aligned(a.weights);
  if (aligned) {
    kernel<true><<<grid, kThreads, 0, stream>>>(a, unit_tiles);
  } else {
    kernel<false><<<grid, kThreads, 0, stream>>>(a, unit_tiles);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

template int32_t launch(const CellFused<float>&, cudaStream_t);
template int32_t launch(const CellFused<double>&, cudaStream_t);
template int32_t launch(const CellFused<lltm_half>&, cudaStream_t);
template int32_t launch(const CellFused<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_CELL_FUSED(name, type)                                                         \
  int32_t lltm_cell_fused_forward_cuda_##name(                                                     \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* input,           \
      const type* weights, const type* bias, const type* old_h, const type* old_cell, type* new_h, \
      type* new_cell, type* gates, CUstream_st* stream) noexcept {                                 \
    const lltm::CellFused<type> arguments = {{batch_size, state_size, nullptr, bias, old_cell,     \
                                              new_h, new_cell, nullptr, nullptr, nullptr},         \
                                             input_features,                                       \
                                             input,                                                \
                                             weights,                                              \
                                             old_h,                                                \
                                             gates};                                               \
    return lltm::launch(arguments, stream);                                                        \
  }

LLTM_DEFINE_CELL_FUSED(float, float)
LLTM_DEFINE_CELL_FUSED(double, double)
LLTM_DEFINE_CELL_FUSED(half, lltm_half)
LLTM_DEFINE_CELL_FUSED(bfloat16, lltm_bfloat16)
