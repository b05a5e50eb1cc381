// Four neighbouring values of a matrix as one load, or as four where they do not lie so.
#ifndef LLTM_PACKED_CUH_
#define LLTM_PACKED_CUH_

#include <cuda_runtime.h>

#include "lltm_types.h"

namespace lltm {
namespace {

const int kGroup = 4;  // columns that a thread reads with one load

// Read in place of columns beyond the end of a line.
__device__ const uint4 kZeros[2] = {};

// Four neighbouring values as they lie in memory.
template <typename S>
struct Packed {
  enum { kWords = kGroup * sizeof(S) / sizeof(uint32_t) };
  uint32_t words[kWords];

  // In assembly, because the compiler then asks for all the loads of a batch before it waits for
  // the first; written in C++ it takes them in turns with the arithmetic. And of one store it makes
  // four. Not by ld.global.nc: the kernel before may write here until await_earlier_kernels, and
  // such loads are for what is read-only as long as a kernel runs.
  __device__ __forceinline__ void load_from(const S* p) {
    if (kWords == 2) {
      asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                   : "=r"(words[0]), "=r"(words[1 % kWords])
                   : "l"(p));
    } else {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i % kWords]), "=r"(words[(i + 1) % kWords]),
                       "=r"(words[(i + 2) % kWords]), "=r"(words[(i + 3) % kWords])
                     : "l"(reinterpret_cast<const uint32_t*>(p) + i));
      }
    }
  }

  __device__ __forceinline__ void store_to(S* p) const {
    if (kWords == 2) {
      asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(words[0]),
                   "r"(words[1 % kWords])
                   : "memory");
    } else {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        asm volatile(
            "st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<uint32_t*>(p) + i),
            "r"(words[i % kWords]), "r"(words[(i + 1) % kWords]), "r"(words[(i + 2) % kWords]),
            "r"(words[(i + 3) % kWords])
            : "memory");
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

// Stores them to columns [k, k + 4) of a row that ends at column `end`.
template <bool kAligned, typename S>
__device__ __forceinline__ void store_group(const ComputeType<S> (&values)[kGroup], S* row,
                                            int64_t k, int64_t end) {
  if (!kAligned) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      if (k + i < end) store(values[i], row + k + i);
    }
  } else if (k < end) {
    Packed<S> group;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) store(values[i], reinterpret_cast<S*>(group.words) + i);
    group.store_to(row + k);
  }
}

// A line of consecutive values.
template <typename S>
struct Line {
  const S* first;
  __device__ __forceinline__ const S* operator()(int64_t k) const { return first + k; }
};

// Of [old_h, input], without the concatenation.
template <typename S>
struct Row {
  const S* old_h;
  int64_t state_size;
  const S* input;
  __device__ __forceinline__ const S* operator()(int64_t k) const {
    return k < state_size ? old_h + k : input + (k - state_size);
  }
};

static inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_PACKED_CUH_
