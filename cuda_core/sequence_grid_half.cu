// The kernels of a sequence spread over the GPU, float16.
#include "sequence_grid_sixteen.cuh"

namespace lltm {
namespace {

GridTable forward_table(bool) { return SixteenBitKernels<HalfFormat, lltm_half>::forward_table(); }
GridTable backward_table(bool) {
  return SixteenBitKernels<HalfFormat, lltm_half>::backward_table();
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(lltm_half)
