// The products of a sequence in one block by multiply-add, in float: any GPU, every type.
#ifndef LLTM_SEQUENCE_BLOCK_FMA_CUH_
#define LLTM_SEQUENCE_BLOCK_FMA_CUH_

#include "sequence_block.cuh"

namespace lltm {
namespace {

// In assembly: of the question which lane it is the compiler makes branches, and shuffles in each.
__device__ __forceinline__ float chosen(bool second, float a, float b) {
  float value;
  asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %2, %1, p; }"
      : "=f"(value)
      : "f"(a), "f"(b), "r"(static_cast<uint32_t>(second)));
  return value;
}

// Of two values that `lane` and its neighbour at `distance` both have parts of, each lane gets one
// whole: `upper` says which.
__device__ __forceinline__ float exchange_sum(bool upper, float first, float second, int distance) {
  const float given = chosen(upper, second, first);
  return chosen(upper, first, second) + __shfl_xor_sync(0xffffffffu, given, distance);
}

// kLanes neighbouring threads share half as many units: each sums its part of the columns for their
// three gates, for every row of the block. With two rows each thread then has one unit of one row.
// Two lanes hand over fewer sums, and with two rows load too much for it.
template <typename S, int kWidth, int kRows_>
class FmaForward {
  static const int kLanes = kRows_ == 2 ? 4 : 2;
  static const int kUnits = kLanes / 2;
  static const int kColumns = kWidth / kLanes;  // of a thread
  // An addition waits for the one before it to the same sum: six at a time keep a warp busy.
  static const int kSums = kLanes == 2 ? 2 : 1;

 public:
  static const int kRows = kRows_;
  static const int kThreads = 2 * kWidth;
  static const bool kIsHere = true;
  struct Memory {
    float4 h[2][kRows][kWidth / 4];
  };

  __device__ __forceinline__ FmaForward(const SequenceShape& shape, const S* weights,
                                        Memory& memory)
      : memory(memory), lane(threadIdx.x % kLanes), first_unit(threadIdx.x / kLanes * kUnits) {
    const int H = static_cast<int>(shape.state_size);
#pragma unroll
    for (int v = 0; v < kUnits; ++v) {
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
        for (int k = 0; k < kColumns; ++k) {
          const int column = 4 * (k / 4 * kLanes + lane) + k % 4;
          w[v][gate][k] = weight(shape, weights, gate, first_unit + v, column, H);
        }
      }
    }
  }

  __device__ __forceinline__ int unit() const { return first_unit + lane % kUnits; }
  __device__ __forceinline__ int row() const { return kRows == 2 ? lane / kUnits : 0; }
  // Of the threads that have the same unit of the same row, one.
  __device__ __forceinline__ bool is_first() const { return kRows == 2 || lane < kUnits; }

  __device__ __forceinline__ void put(int buffer, float h) {
    reinterpret_cast<float*>(memory.h[buffer][row()])[unit()] = h;
  }
  __device__ __forceinline__ void multiply(int buffer) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 3 * kUnits * kSums; ++i) {
        sums[r][i / (3 * kSums)][i / kSums % 3][i % kSums] = 0.0f;
      }
    }
#pragma unroll
    for (int j = 0; j < kColumns / 4; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 h = memory.h[buffer][r][kLanes * j + lane];
#pragma unroll
        for (int v = 0; v < kUnits; ++v) {
#pragma unroll
          for (int gate = 0; gate < 3; ++gate) {
            float* const sum = sums[r][v][gate];
            sum[0] += h.x * w[v][gate][4 * j];
            sum[kSums - 1] += h.y * w[v][gate][4 * j + 1];
            sum[0] += h.z * w[v][gate][4 * j + 2];
            sum[kSums - 1] += h.w * w[v][gate][4 * j + 3];
          }
        }
      }
    }
  }
  // Of this thread's unit and row, for the three gates.
  __device__ __forceinline__ void take(float (&x)[3]) const {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      float s[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        s[r] = kUnits == 2 ? exchange_sum(lane & 1, whole(sums[r][0][gate]),
                                          whole(sums[r][kUnits - 1][gate]), 1)
                           : whole(sums[r][0][gate]);
      }
      x[gate] = exchange_sum(kRows == 2 && lane >= kUnits, s[0], s[kRows - 1], kUnits);
    }
  }

 private:
  __device__ __forceinline__ static float whole(const float (&sum)[kSums]) {
    return kSums == 2 ? sum[0] + sum[kSums - 1] : sum[0];
  }

  Memory& memory;
  const int lane, first_unit;
  float w[kUnits][3][kColumns];
  float sums[kRows][kUnits][3][kSums];
};

// Eight neighbouring threads share four units: each sums an eighth of the 3 * kWidth d_gates for
// the four, for every row. With two rows each thread then has one unit of one row.
template <typename S, int kWidth, int kRows_>
class FmaBackward {
  static const int kColumns = 3 * kWidth / 8;  // of a thread

 public:
  static const int kRows = kRows_;
  static const int kThreads = 2 * kWidth;
  static const bool kIsHere = true;
  struct Memory {
    float4 d_gates[2][kRows][3 * kWidth / 4];
  };

  __device__ __forceinline__ FmaBackward(const SequenceShape& shape, const S* weights,
                                         Memory& memory)
      : memory(memory), eighth(threadIdx.x & 7), four(threadIdx.x >> 3) {
    const int H = static_cast<int>(shape.state_size);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int column = 32 * (k / 4) + 4 * eighth + k % 4;  // of the padded d_gates
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        w[k][v] = weight(shape, weights, column / kWidth, column % kWidth, 4 * four + v, H);
      }
    }
  }

  __device__ __forceinline__ int unit() const { return 4 * four + (eighth & 3); }
  __device__ __forceinline__ int row() const { return kRows == 2 ? eighth >> 2 : 0; }
  __device__ __forceinline__ bool is_first() const { return kRows == 2 || eighth < 4; }

  __device__ __forceinline__ void put(int buffer, const float (&d_gates)[3]) {
    float* const to = reinterpret_cast<float*>(memory.d_gates[buffer][row()]) + unit();
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) to[gate * kWidth] = d_gates[gate];
  }
  __device__ __forceinline__ void multiply(int buffer) {
#pragma unroll
    for (int i = 0; i < 4 * kRows; ++i) sums[i / 4][i % 4] = 0.0f;
#pragma unroll
    for (int j = 0; j < kColumns / 4; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 d = memory.d_gates[buffer][r][8 * j + eighth];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          sums[r][v] += d.x * w[4 * j][v];
          sums[r][v] += d.y * w[4 * j + 1][v];
          sums[r][v] += d.z * w[4 * j + 2][v];
          sums[r][v] += d.w * w[4 * j + 3][v];
        }
      }
    }
  }
  // d_h = d_gates @ weights, of this thread's unit and row
  __device__ __forceinline__ float take() const {
    float s[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float even = exchange_sum(eighth & 1, sums[r][0], sums[r][1], 1);
      const float odd = exchange_sum(eighth & 1, sums[r][2], sums[r][3], 1);
      s[r] = exchange_sum(eighth & 2, even, odd, 2);
    }
    return exchange_sum(kRows == 2 && eighth >= 4, s[0], s[kRows - 1], 4);
  }

 private:
  Memory& memory;
  const int eighth, four;
  float w[kColumns][4];
  float sums[kRows][4];
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_FMA_CUH_
