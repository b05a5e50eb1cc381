// The kernels of a sequence spread over the GPU, bfloat16.
#include "sequence_grid_sixteen.cuh"

namespace lltm {
namespace {

GridTable forward_table(bool) {
  return SixteenBitKernels<Bfloat16Format, lltm_bfloat16>::forward_table();
}
GridTable backward_table(bool) {
  return SixteenBitKernels<Bfloat16Format, lltm_bfloat16>::backward_table();
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(lltm_bfloat16)
