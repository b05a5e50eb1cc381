// What blocks that multiply matrices are made of: panels of the factors in shared memory, how they
// come there, and the tile of sums, by multiply-add or by tensor cores.
#ifndef LLTM_PRODUCT_TILES_CUH_
#define LLTM_PRODUCT_TILES_CUH_

#include <cuda_runtime.h>

#include "device.cuh"
#include "packed.cuh"
#include "tensor_core_tf32.cuh"

namespace lltm {
namespace {

const int kThreads = 128;
const int kTile = 64;  // rows and columns

// Terms of a tile's rows, or columns, a term's values side by side. Places are mixed so that
// neither the threads that turn lines around meet in a bank, nor those that read operands.
template <typename T>
class Panel {
  alignas(16) T values[64 / sizeof(T)][kTile + 8];

 public:
  static const int kDepth = 64 / sizeof(T);  // terms
  // A term's value of a line; those of the same eight lines lie side by side.
  __device__ __forceinline__ T* at(int term, int line) {
    return &values[term][line ^ (term / kGroup % 4 * 8)];
  }
};

// The lines of a matrix, as a Bringer asks for them.
template <typename S>
struct MatrixLines {
  const S* first;
  int64_t stride;
  __device__ __forceinline__ Line<S> operator()(int64_t line) const {
    return {first + line * stride};
  }
};

// What a thread brings of a panel: groups of four values, in registers until there is room. The
// lines of the factor in memory go along the terms if kAlongTerms, else along the panel.
template <bool kAlongTerms, bool kAligned, typename S, typename Lines>
class Bringer {
  typedef ComputeType<S> T;
  typedef Panel<T> To;
  static const int kGroupsOfLine = (kAlongTerms ? To::kDepth : kTile) / kGroup;
  static const int kLoads = To::kDepth * kTile / kGroup / kThreads;
  static_assert(kThreads % kGroupsOfLine == 0, "all loads of a thread are of the same group");

 public:
  // Of the panel from place `first` of `count` on.
  __device__ __forceinline__ Bringer(const Lines& lines, int64_t first, int64_t count)
      : lines(lines), first(first), count(count) {}

  // Of the terms from `term` on; from `end` on they are 0, as are places beyond the count.
  __device__ __forceinline__ void ask(int64_t term, int64_t end) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int64_t line = (kAlongTerms ? first : term) + line_of(i);
      const bool inside = line < (kAlongTerms ? count : end);
      load_group<kAligned>(groups[i], lines(inside ? line : 0),
                           (kAlongTerms ? term : first) + group() * kGroup,
                           inside ? (kAlongTerms ? end : count) : 0);
    }
  }

  // change(value) -> what is multiplied
  template <typename Change>
  __device__ __forceinline__ void put(To& to, const Change& change) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        const T value = change(groups[i][j]);
        if (kAlongTerms) {
          *to.at(group() * kGroup + j, line_of(i)) = value;
        } else {
          to.at(line_of(i), group() * kGroup)[j] = value;
        }
      }
    }
  }

  // Of a panel across its lines: adds what this thread brought up, for its group.
  __device__ __forceinline__ void add_to(T (&sums)[kGroup]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) sums[j] += groups[i][j];
    }
  }

  __device__ __forceinline__ static int group() { return threadIdx.x % kGroupsOfLine; }
  __device__ __forceinline__ static int line_of(int i) {
    return (i * kThreads + threadIdx.x) / kGroupsOfLine;
  }

 private:
  const Lines lines;
  const int64_t first, count;
  Packed<S> groups[kLoads];
};

// A thread has eight rows of four columns: three loads of four values feed 32 multiplications.
template <typename T>
class FmaTile {
  static const int kRows = 8;
  static const int kBeside = kTile / kGroup;
  static_assert(kThreads / kBeside * kRows == kTile, "a thread has a place in the tile");

 public:
  __device__ __forceinline__ static T operand(T value) { return value; }
  __device__ __forceinline__ void multiply(Panel<T>& left, Panel<T>& right) {
#pragma unroll
    for (int k = 0; k < Panel<T>::kDepth; ++k) {
      T x[kRows], w[kGroup];
#pragma unroll
      for (int r = 0; r < kRows; ++r) x[r] = left.at(k, below())[r];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) w[j] = right.at(k, beside())[j];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int j = 0; j < kGroup; ++j) sums[r][j] += x[r] * w[j];
      }
    }
  }
  // give(row, column, values): four of them in a row
  template <typename Give>
  __device__ __forceinline__ void give(const Give& give) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) give(below() + r, beside(), sums[r]);
  }

 private:
  __device__ __forceinline__ static int below() { return threadIdx.x / kBeside * kRows; }
  __device__ __forceinline__ static int beside() { return threadIdx.x % kBeside * kGroup; }

  T sums[kRows][kGroup] = {};
};

// At the accuracy of TF32, which half types keep: a warp has 32 rows of 32 columns. Lane 4g + q has
// rows g and g + 8 of an instruction's 16, of its eight columns 2q and 2q + 1.
template <typename S>
class TensorTile {
 public:
  // A NaN stays one.
  __device__ __forceinline__ static float operand(float value) {
    return sizeof(S) == 2 ? value : __uint_as_float(rounded_to_tf32(plain_bits(value)));
  }
  __device__ __forceinline__ void multiply(Panel<float>& left, Panel<float>& right) {
#pragma unroll
    for (int k = 0; k < Panel<float>::kDepth; k += 8) {
      uint4 a[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        a[i] = make_uint4(word(left, k, below() + 16 * i), word(left, k, below() + 16 * i + 8),
                          word(left, k + 4, below() + 16 * i),
                          word(left, k + 4, below() + 16 * i + 8));
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t first = word(right, k, beside() + 8 * j);
        const uint32_t second = word(right, k + 4, beside() + 8 * j);
#pragma unroll
        for (int i = 0; i < 2; ++i) mma_tf32(sums[i][j], a[i], first, second);
      }
    }
  }
  // Two neighbouring lanes have two rows of four columns: each takes one of them.
  template <typename Give>
  __device__ __forceinline__ void give(const Give& give) const {
    const bool upper = lane() & 1;
    const int row = below() + lane() / 4 + (upper ? 8 : 0);
    const int column = beside() + lane() % 4 / 2 * kGroup;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float (&s)[4] = sums[i][j];
        const float x = __shfl_xor_sync(~0u, upper ? s[0] : s[2], 1);
        const float y = __shfl_xor_sync(~0u, upper ? s[1] : s[3], 1);
        const float four[kGroup] = {upper ? x : s[0], upper ? y : s[1], upper ? s[2] : x,
                                    upper ? s[3] : y};
        give(row + 16 * i, column + 8 * j, four);
      }
    }
  }

 private:
  __device__ __forceinline__ static int lane() { return threadIdx.x % 32; }
  __device__ __forceinline__ static int below() { return threadIdx.x / 64 * 32; }
  __device__ __forceinline__ static int beside() { return threadIdx.x / 32 % 2 * 32; }
  // Of the lane's term and line of eight.
  __device__ __forceinline__ static uint32_t word(Panel<float>& panel, int term, int line) {
    return __float_as_uint(*panel.at(term + lane() % 4, line + lane() / 4));
  }

  float sums[2][4][4] = {};
};

// The tiles of a type, and whether to take the fast one: at the accuracy of TF32, where the GPU has
// tensor cores.
template <typename S>
struct Tiles {
  typedef FmaTile<ComputeType<S>> Full;
  typedef TensorTile<S> Fast;
};
template <>
struct Tiles<double> {
  typedef FmaTile<double> Full;
  typedef FmaTile<double> Fast;
};
template <typename S>
bool takes_fast_tile(bool tf32) {
  return (tf32 || sizeof(S) == 2) && has_hopper_kernels();
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_PRODUCT_TILES_CUH_
