// The products of a sequence in one block by tensor cores, for half types: a warp has all columns
// of 16 units, so that nothing is left to add up. The eight rows that an instruction takes are the
// two of the block in turn: each of four lanes gets the same four sums, of two units and two rows,
// and takes one.
#ifndef LLTM_SEQUENCE_BLOCK_TENSOR_CUH_
#define LLTM_SEQUENCE_BLOCK_TENSOR_CUH_

#include "sequence_block.cuh"
#include "tensor_core.cuh"

namespace lltm {
namespace {

// The number format of a type.
template <typename S>
struct BlockFormatOf;
template <>
struct BlockFormatOf<lltm_half> {
  typedef HalfFormat Type;
};
template <>
struct BlockFormatOf<lltm_bfloat16> {
  typedef Bfloat16Format Type;
};

// What both passes have in common: places, and the product of kColumns columns in shared memory.
template <typename S, int kWidth>
class TensorProduct {
 public:
  static const int kRows = 2;
  static const int kThreads = 2 * kWidth;
#ifdef LLTM_TENSOR_CORES
  static const bool kIsHere = true;
#else
  static const bool kIsHere = false;
#endif

  __device__ __forceinline__ int unit() const { return first_unit() + (lane() & 3) / 2; }
  __device__ __forceinline__ int row() const { return lane() & 1; }
  __device__ __forceinline__ bool is_first() const { return true; }

 protected:
  typedef typename BlockFormatOf<S>::Type Numbers;
  typedef typename Numbers::Units Units;
  typedef lltm::Sums<float, true> Sums;
  static const int kRun = Numbers::kRun;
  // Between the rows in shared memory, so that they lie in different banks.
  static const int kGap = 32;

  __device__ __forceinline__ static int lane() { return threadIdx.x & 31; }
  // Of the two whose sums this lane has.
  __device__ __forceinline__ static int first_unit() {
    return (threadIdx.x >> 5) * 16 + 2 * (lane() >> 2);
  }
  // The first column of this lane's run in a chunk.
  __device__ __forceinline__ static int column(int chunk) {
    return (chunk * 4 + (lane() & 3)) * kRun;
  }
  // value(k, unit) -> the operand of a chunk
  template <typename Value>
  __device__ __forceinline__ static Units units(int chunk, const Value& value) {
    float even[kRun], odd[kRun];
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      even[i] = value(column(chunk) + i, first_unit());
      odd[i] = value(column(chunk) + i, first_unit() + 1);
    }
    return Numbers::units(Numbers::run(even), Numbers::run(odd));
  }
  // This lane's run of a chunk of the row that is its column of the operand.
  template <int kColumns>
  __device__ __forceinline__ static uint4 piece(const S (&rows)[kRows][kColumns], int chunk) {
    return *reinterpret_cast<const uint4*>(&rows[lane() / 4 % kRows][column(chunk)]);
  }
  __device__ __forceinline__ static float own(const Sums& sums) {
    const int i = lane() & 3;
    const float even = i & 1 ? sums.total(1) : sums.total(0);
    const float odd = i & 1 ? sums.total(3) : sums.total(2);
    return i & 2 ? odd : even;
  }
};

template <typename S, int kWidth>
class TensorForward : public TensorProduct<S, kWidth> {
  typedef TensorProduct<S, kWidth> Product;
  static const int kChunks = kWidth / (4 * Product::kRun);

 public:
  struct Memory {
    alignas(16) S h[2][Product::kRows][kWidth + Product::kGap];
  };

  __device__ __forceinline__ TensorForward(const SequenceShape& shape, const S* weights,
                                           Memory& memory)
      : memory(memory) {
    const int H = static_cast<int>(shape.state_size);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        w[gate][c] = this->units(
            c, [&](int column, int unit) { return weight(shape, weights, gate, unit, column, H); });
      }
    }
  }

  __device__ __forceinline__ void put(int buffer, float h) {
    store(h, &memory.h[buffer][this->row()][this->unit()]);
  }
  __device__ __forceinline__ void multiply(int buffer) {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) sums[gate].clear();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const uint4 h = this->piece(memory.h[buffer], c);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) Product::Numbers::multiply(sums[gate], w[gate][c], h);
    }
    __syncwarp();  // for the compiler: h is asked for before all that is written after this
  }
  // Of this thread's unit and row, for the three gates.
  __device__ __forceinline__ void take(float (&x)[3]) const {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) x[gate] = this->own(sums[gate]);
  }

 private:
  Memory& memory;
  typename Product::Units w[3][kChunks];
  typename Product::Sums sums[3];
};

template <typename S, int kWidth>
class TensorBackward : public TensorProduct<S, kWidth> {
  typedef TensorProduct<S, kWidth> Product;
  static const int kChunks = 3 * kWidth / (4 * Product::kRun);

 public:
  struct Memory {
    alignas(16) S d_gates[2][Product::kRows][3 * kWidth + Product::kGap];
  };

  __device__ __forceinline__ TensorBackward(const SequenceShape& shape, const S* weights,
                                            Memory& memory)
      : memory(memory) {
    const int H = static_cast<int>(shape.state_size);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      w[c] = this->units(c, [&](int column, int unit) {
        return weight(shape, weights, column / kWidth, column % kWidth, unit, H);
      });
    }
  }

  __device__ __forceinline__ void put(int buffer, const float (&d_gates)[3]) {
    S* const to = memory.d_gates[buffer][this->row()] + this->unit();
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) store(d_gates[gate], to + gate * kWidth);
  }
  __device__ __forceinline__ void multiply(int buffer) {
    // A product waits for the one before it that adds to the same sums: two more.
    sums[0].clear();
    sums[1].clear();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      Product::Numbers::multiply(sums[c % 2], w[c], this->piece(memory.d_gates[buffer], c));
    }
  }
  __device__ __forceinline__ float take() const { return this->own(sums[0]) + this->own(sums[1]); }

 private:
  Memory& memory;
  typename Product::Units w[kChunks];
  typename Product::Sums sums[2];
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_TENSOR_CUH_
