// The kernels of a sequence spread over the GPU, float64.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel forward(int most_turns = 8) {
  return forward_kernel_of<DoubleFormat, double, kUnits, kRows, kChunks, kInRegisters, kDepth>(
      most_turns);
}

template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel backward(int most_turns = 8) {
  return backward_kernel_of<DoubleFormat, double, kUnits, kRows, kChunks, kInRegisters, kDepth>(
      most_turns);
}

// Units, rows, chunks, those in registers, pieces under way. A chunk is 8 units, of 64 each warp
// has one going forward and three going backward.
GridTable forward_table(bool) {
  return {{forward<16, 8, 1, 1, 1>(), forward<16, 8, 2, 2, 2>(), forward<16, 8, 4, 4, 4>(),
           forward<16, 16, 4, 4, 8>(), forward<16, 8, 8, 4, 8>(2), forward<16, 16, 8, 5, 6>(2),
           forward<16, 8, 12, 6, 4>(2)}};
}

GridTable backward_table(bool) {
  return {{backward<16, 8, 3, 3, 3>(), backward<16, 8, 6, 6, 6>(), backward<16, 8, 12, 12, 12>(),
           backward<16, 16, 12, 12, 12>(), backward<16, 8, 24, 14, 12>(2),
           backward<16, 16, 24, 14, 12>(2), backward<16, 8, 36, 14, 6>(2)}};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(double)
