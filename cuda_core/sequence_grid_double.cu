// The kernels of a sequence spread over the GPU, float64.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk is 8 units. Each warp has as many chunks as make K.
typedef GridKernels<DoubleFormat, double> Double;

GridTable forward_table(bool) {
  return {{Double::forward<16, 8, 1, 1, 1>(), Double::forward<16, 8, 2, 2, 2>(),
           Double::forward<16, 8, 4, 4, 4>(), Double::forward<16, 16, 4, 4, 8>(),
           Double::forward<16, 8, 8, 4, 8>(2), Double::forward<16, 16, 8, 5, 6>(2),
           Double::forward<16, 8, 12, 6, 4>(2)}};
}

GridTable backward_table(bool) {
  return {{Double::backward<16, 8, 3, 3, 3>(), Double::backward<16, 8, 6, 6, 6>(),
           Double::backward<16, 8, 8, 8, 8, 12>(), Double::backward<16, 16, 12, 12, 12>(),
           Double::backward<16, 8, 16, 9, 8, 12>(2), Double::backward<16, 16, 16, 9, 8, 12>(2),
           Double::backward<16, 8, 36, 14, 6>(2)}};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(double)
