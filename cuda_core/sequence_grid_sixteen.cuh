// The kernels of a sequence spread over the GPU for a type of 16 bits.
#ifndef LLTM_SEQUENCE_GRID_SIXTEEN_CUH_
#define LLTM_SEQUENCE_GRID_SIXTEEN_CUH_

#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// Units, rows, chunks, those in registers, pieces under way. A chunk is 32 units going forward, of
// 256 each warp has one; and three going backward.
template <typename Format, typename S>
struct SixteenBitKernels {
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
  static GridKernel forward(int most_turns = 8) {
    return forward_kernel_of<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth>(most_turns);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
  static GridKernel backward(int most_turns = 8) {
    return backward_kernel_of<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth>(most_turns);
  }

  static GridTable forward_table() {
    return {{forward<16, 8, 1, 1, 1>(), forward<16, 16, 1, 1, 2>(), forward<16, 8, 2, 2, 2>(),
             forward<32, 8, 2, 2, 2>(), forward<32, 16, 2, 2, 4>(), forward<16, 8, 3, 3, 3>(),
             forward<32, 16, 3, 2, 6>(), forward<16, 8, 4, 4, 4>(), forward<32, 16, 4, 2, 8>(),
             forward<16, 16, 6, 3, 6>(), forward<16, 32, 6, 3, 6>(2), forward<16, 16, 8, 3, 8>(4)}};
  }
  static GridTable backward_table() {
    return {{backward<16, 8, 3, 3, 3>(), backward<16, 16, 3, 3, 6>(), backward<16, 8, 6, 6, 6>(),
             backward<32, 8, 6, 6, 6>(), backward<32, 16, 6, 4, 12>(), backward<16, 8, 9, 9, 9>(),
             backward<32, 16, 9, 3, 9>(), backward<16, 8, 12, 11, 12>(),
             backward<32, 16, 12, 3, 12>(), backward<16, 16, 18, 10, 12>(),
             backward<16, 32, 18, 10, 9>(2), backward<16, 16, 24, 10, 12>(),
             backward<16, 32, 24, 10, 9>(2)}};
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_SIXTEEN_CUH_
