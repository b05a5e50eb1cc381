// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel forward(int most_turns = 8) {
  return forward_kernel_of<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth>(most_turns);
}

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel backward(int most_turns = 8) {
  return backward_kernel_of<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth>(
      most_turns);
}

// Units, rows, chunks, those in registers, pieces under way. A chunk is 16 units, of 256 each warp
// has two going forward and six going backward; of a format of 16 bits, 32 units.
GridTable forward_table(bool tf32) {
  if (tf32) {
    return {
        {forward<ShortFloatFormat, 16, 8, 1, 1, 1>(), forward<ShortFloatFormat, 16, 16, 1, 1, 2>(),
         forward<ShortFloatFormat, 16, 8, 2, 2, 2>(), forward<ShortFloatFormat, 32, 8, 2, 2, 2>(),
         forward<ShortFloatFormat, 32, 16, 2, 2, 4>(), forward<ShortFloatFormat, 16, 8, 3, 3, 3>(),
         forward<ShortFloatFormat, 32, 8, 3, 2, 3>(), forward<ShortFloatFormat, 16, 8, 4, 4, 4>(),
         forward<ShortFloatFormat, 32, 8, 4, 2, 4>(), forward<ShortFloatFormat, 16, 16, 6, 3, 6>(),
         forward<ShortFloatFormat, 16, 32, 6, 3, 6>(),
         forward<ShortFloatFormat, 16, 16, 8, 4, 6>()}};
  }
  return {{forward<SplitFormat, 16, 8, 2, 2, 2>(), forward<SplitFormat, 16, 16, 2, 2, 4>(),
           forward<SplitFormat, 16, 8, 4, 4, 4>(), forward<SplitFormat, 16, 16, 4, 3, 8>(),
           forward<SplitFormat, 16, 8, 6, 3, 6>(), forward<SplitFormat, 16, 16, 6, 2, 8>(),
           forward<SplitFormat, 16, 8, 8, 2, 8>(), forward<SplitFormat, 16, 16, 8, 2, 8>(),
           forward<SplitFormat, 16, 8, 12, 6, 6>()}};
}

GridTable backward_table(bool tf32) {
  if (tf32) {
    return {{backward<Tf32Format, 16, 8, 6, 6, 6>(), backward<Tf32Format, 16, 16, 6, 6, 12>(),
             backward<Tf32Format, 16, 8, 12, 12, 12>(), backward<Tf32Format, 32, 8, 12, 5, 12>(),
             backward<Tf32Format, 16, 8, 18, 10, 12>(), backward<Tf32Format, 16, 32, 18, 8, 12>(),
             backward<Tf32Format, 16, 8, 24, 10, 12>(), backward<Tf32Format, 16, 32, 24, 8, 12>(2),
             backward<Tf32Format, 16, 8, 36, 14, 10>(4)}};
  }
  return {
      {backward<SplitTf32Format, 16, 8, 6, 6, 6>(), backward<SplitTf32Format, 16, 16, 6, 6, 6>(),
       backward<SplitTf32Format, 16, 8, 12, 8, 12>(), backward<SplitTf32Format, 32, 8, 12, 3, 8>(),
       backward<SplitTf32Format, 16, 8, 18, 7, 10>(), backward<SplitTf32Format, 16, 32, 18, 3, 6>(),
       backward<SplitTf32Format, 16, 8, 24, 7, 10>(), backward<SplitTf32Format, 16, 32, 24, 6, 4>(),
       backward<SplitTf32Format, 16, 8, 36, 12, 6>()}};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(float)
