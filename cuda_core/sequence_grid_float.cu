// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel forward() {
  return forward_kernel_of<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth>();
}

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel backward(int most_turns = 8) {
  return backward_kernel_of<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth>(
      most_turns);
}

// Units, rows, chunks, those in registers, pieces under way. A chunk is 16 units, of 256 each warp
// has two going forward and six going backward; of a format of 16 bits, 32 units.
GridTable forward_table(bool tf32) {
  const GridTable close = {
      {forward<SplitFormat, 16, 8, 2, 2, 2>(), forward<SplitFormat, 16, 16, 2, 2, 4>(),
       forward<SplitFormat, 16, 8, 4, 4, 4>(), forward<SplitFormat, 16, 16, 4, 3, 8>(),
       forward<SplitFormat, 16, 8, 6, 3, 6>(), forward<SplitFormat, 16, 16, 6, 2, 8>(),
       forward<SplitFormat, 16, 8, 8, 2, 8>(), forward<SplitFormat, 16, 16, 8, 2, 8>()},
      8};
  const GridTable fast = {
      {forward<ShortFloatFormat, 16, 8, 1, 1, 1>(), forward<ShortFloatFormat, 16, 16, 1, 1, 2>(),
       forward<ShortFloatFormat, 16, 8, 2, 2, 2>(), forward<ShortFloatFormat, 32, 8, 2, 2, 2>(),
       forward<ShortFloatFormat, 32, 16, 2, 2, 4>(), forward<ShortFloatFormat, 16, 8, 3, 3, 3>(),
       forward<ShortFloatFormat, 32, 8, 3, 2, 3>(), forward<ShortFloatFormat, 16, 8, 4, 4, 4>(),
       forward<ShortFloatFormat, 32, 8, 4, 2, 4>()},
      9};
  return tf32 ? fast : close;
}

GridTable backward_table(bool tf32) {
  const GridTable close = {
      {backward<SplitTf32Format, 16, 8, 6, 6, 6>(), backward<SplitTf32Format, 16, 16, 6, 6, 6>(),
       backward<SplitTf32Format, 16, 8, 12, 8, 12>(), backward<SplitTf32Format, 32, 8, 12, 3, 8>(),
       backward<SplitTf32Format, 16, 8, 18, 7, 10>(), backward<SplitTf32Format, 16, 32, 18, 3, 6>(),
       backward<SplitTf32Format, 16, 8, 24, 7, 10>(),
       backward<SplitTf32Format, 16, 32, 24, 6, 4>()},
      8};
  const GridTable fast = {
      {backward<Tf32Format, 16, 8, 6, 6, 6>(), backward<Tf32Format, 16, 16, 6, 6, 12>(),
       backward<Tf32Format, 16, 8, 12, 12, 12>(), backward<Tf32Format, 32, 8, 12, 5, 12>(),
       backward<Tf32Format, 16, 8, 18, 10, 12>(), backward<Tf32Format, 16, 32, 18, 8, 12>(),
       backward<Tf32Format, 16, 8, 24, 10, 12>(), backward<Tf32Format, 16, 32, 24, 8, 12>(2)},
      8};
  return tf32 ? fast : close;
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(float)
