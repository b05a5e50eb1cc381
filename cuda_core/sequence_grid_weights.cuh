// The weights of the forward pass of a sequence spread over the GPU: as large as their format needs
// them.
#ifndef LLTM_SEQUENCE_GRID_WEIGHTS_CUH_
#define LLTM_SEQUENCE_GRID_WEIGHTS_CUH_

#include "sequence_grid.cuh"

namespace lltm {
namespace {

template <typename Shape>
class GridForwardWeights : protected GridBlock<Shape> {
 protected:
  typedef GridBlock<Shape> Block;
  typedef typename Shape::S S;
  typedef typename Shape::Numbers Numbers;
  typedef typename Block::Value Value;
  using Block::H;
  using Block::kCluster;
  using Block::kUnits;
  using Block::memory;
  using Block::rank;
  using Block::slice;

  static const bool kTakesTurns = TakesTurns<Numbers>::value;
  static constexpr Value kSent = Numbers::kScaled ? 32768.0f : 1.0f;

  __device__ __forceinline__ GridForwardWeights(const SequenceForward<S>& a,
                                                const GridLaunch& launch,
                                                typename Shape::Memory& memory)
      : Block(a.shape, a.shape.reverse, launch, memory), a(a), scale(1), unscale(1 / kSent) {}

  // Halves have few exponents: |h|, at most one, is sent 2^15 times larger, and the weights of a
  // block, or cluster, are multiplied by a power of two that brings the largest to between one and
  // two.
  __device__ __forceinline__ void choose_scale() {
    if (threadIdx.x == 0) memory.largest = 0;
    __syncthreads();
    unsigned largest = 0;
    const int units = kCluster * kUnits;
    for (int line = this->warp; line < 3 * units; line += Block::kWarps) {
      const int unit = (slice - rank) * kUnits + line % units;
      if (unit >= H) continue;
      const S* const weights =
          a.weights + (line / units * a.shape.state_size + unit) * a.shape.weights_stride;
#pragma unroll 8
      for (int i = this->lane; i < H; i += 32) {
        const float value = static_cast<float>(load(weights[i]));
        largest = max(largest, __float_as_uint(value) & 0x7fffffffu);
      }
    }
    atomicMax(&memory.largest, largest);
    __syncthreads();
    const unsigned exponent = memory.largest >> 23;
    if (exponent == 0 || exponent >= 254) return;
    scale = __uint_as_float((254 - exponent) << 23);
    unscale = __uint_as_float(exponent << 23) / kSent;
  }

  // first_above: of each unit's gate, where its first weight between two neighbours goes; the next
  // ones take turns.
  __device__ __forceinline__ void load_weights(uint32_t first_above) {
    above = first_above;
    int lane = this->lane;
    // Lest addresses wait in registers for the next time.
    if (kTakesTurns) asm volatile("" : "+r"(lane));
    Block::load_weights(
        lane,
        [&](int gate, int k, int unit, Value* values) { read_weights(gate, k, unit, values); },
        [&](int gate, int unit, Value* values) { return weights_run(gate, unit, values); });
  }

  const SequenceForward<S>& a;
  Value scale, unscale;  // of the weights, and of the sums

 private:
  __device__ __forceinline__ void read_weights(int gate, int column, int unit,
                                               Value* values) const {
    const S* const line =
        a.weights + (gate * a.shape.state_size + unit) * a.shape.weights_stride + column;
#pragma unroll
    for (int i = 0; i < Numbers::kRun; ++i) {
      values[i] = unit < H && column + i < H ? load(line[i]) : Value(0);
    }
  }

  __device__ __forceinline__ uint4 weights_run(int gate, int unit, Value* values) {
#pragma unroll
    for (int i = 0; i < Numbers::kRun; ++i) {
      if (Numbers::kScaled) values[i] *= scale;
    }
    TakesTurns<Numbers>::keep(values, 1u << (4 * gate + unit / 16 % 2 * 2 + unit % 2), above);
    return Numbers::run(values);
  }

  uint32_t above;  // where the next weight between two goes, see SplitFormat
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_WEIGHTS_CUH_
