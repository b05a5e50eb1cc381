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
  static GridKernel forward() {
    return forward_kernel_of<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth>();
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
  static GridKernel backward() {
    return backward_kernel_of<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth>();
  }

  static GridTable forward_table() {
    const GridTable table = {
        {forward<16, 8, 1, 1, 1>(), forward<16, 16, 1, 1, 2>(), forward<16, 8, 2, 2, 2>(),
         forward<32, 8, 2, 2, 2>(), forward<32, 16, 2, 2, 4>(), forward<16, 8, 3, 3, 3>(),
         forward<32, 16, 3, 2, 6>(), forward<16, 8, 4, 4, 4>(), forward<32, 16, 4, 2, 8>()},
        9};
    return table;
  }
  static GridTable backward_table() {
    const GridTable table = {
        {backward<16, 8, 3, 3, 3>(), backward<16, 16, 3, 3, 6>(), backward<16, 8, 6, 6, 6>(),
         backward<32, 8, 6, 6, 6>(), backward<32, 16, 6, 4, 12>(), backward<16, 8, 9, 9, 9>(),
         backward<32, 16, 9, 3, 9>(), backward<16, 8, 12, 11, 12>(), backward<32, 16, 12, 3, 12>()},
        9};
    return table;
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_SIXTEEN_CUH_
