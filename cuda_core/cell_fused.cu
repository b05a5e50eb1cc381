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

// Read in place of columns beyond the end of a line.
__device__ const uint4 kZeros[2] = {};

// Four neighbouring values as they lie in memory.
template <typename S>
struct Packed {
  enum { kWords = kGroup * sizeof(S) / sizeof(uint32_t) };
  uint32_t words[kWords];

  // In assembly, because the compiler then asks for all the loads of a batch before it waits for
  // the first; written in C++ it takes them in turns with the arithmetic.
  __device__ __forceinline__ void load_from(const S* p) {
    if (kWords == 2) {
      asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                   : "=r"(words[0]), "=r"(words[1 % kWords])
                   : "l"(p));
    } else {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i % kWords]), "=r"(words[(i + 1) % kWords]),
                       "=r"(words[(i + 2) % kWords]), "=r"(words[(i + 3) % kWords])
                     : "l"(reinterpret_cast<const uint32_t*>(p) + i));
      }
    }
  }

  __device__ __forceinline__ ComputeType<S> operator[](int i) const {
    return load(reinterpret_cast<const S*>(words)[i]);
  }
};

// Columns [k, k + 4) of [old_h, input] or of weights, of which `line` returns the address of one;
// what lies beyond column `end` is 0. With kAligned a group is inside or outside as a whole, does
// not cross from old_h into input, and one load takes it.
template <bool kAligned, typename S, typename Line>
__device__ __forceinline__ void load_group(Packed<S>& group, const Line& line, int64_t k,
                                           int64_t end) {
  const S* const zeros = reinterpret_cast<const S*>(kZeros);
  if (kAligned) {
    group.load_from(k < end ? line(k) : zeros);
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      reinterpret_cast<S*>(group.words)[i] = *(k + i < end ? line(k + i) : zeros);
    }
  }
}

template <typename S>
struct Row {  // of [old_h, input], without the concatenation
  const S* old_h;
  int64_t state_size;
  const S* input;
  __device__ __forceinline__ const S* operator()(int64_t k) const {
    return k < state_size ? old_h + k : input + (k - state_size);
  }
};

template <typename S>
struct Weights {  // one row of them
  const S* first;
  __device__ __forceinline__ const S* operator()(int64_t k) const { return first + k; }
};

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads) kernel(const CellFused<S> a, int64_t unit_tiles) {
  typedef ComputeType<S> T;
  const int64_t H = a.cell.state_size;
  const int64_t K = H + a.input_features;
  const int split = threadIdx.x % kSplit;
  const int64_t u = blockIdx.x % unit_tiles * kUnits + threadIdx.x / kSplit % kUnits;
  const int64_t r = blockIdx.x / unit_tiles * kRows + threadIdx.x / (kSplit * kUnits);
  const bool inside = r < a.cell.batch_size && u < H;

  // Threads outside compute what the first row or unit does, and drop it.
  const int64_t x_row = inside ? r : 0;
  const int64_t w_row = inside ? u : 0;
  const Row<S> row = {a.old_h + x_row * H, H, a.input + x_row * a.input_features};
  T sums[3] = {T(0), T(0), T(0)};
  for (int64_t base = 0; base < K; base += kBatch * kSplit * kGroup) {
    Packed<S> x[kBatch];
    Packed<S> w[kBatch][3];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t k = base + (b * kSplit + split) * kGroup;
      load_group<kAligned>(x[b], row, k, K);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) {
        const Weights<S> weights = {a.weights + (gate * H + w_row) * K};
        load_group<kAligned>(w[b][gate], weights, k, K);
      }
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) sums[gate] += x[b][i] * w[b][gate][i];
      }
    }
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
