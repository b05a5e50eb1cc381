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

// A line of consecutive values.
template <typename S>
struct Line {
  const S* first;
  __device__ __forceinline__ const S* operator()(int64_t k) const { return first + k; }
};

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

static inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
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
