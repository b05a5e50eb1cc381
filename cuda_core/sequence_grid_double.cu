// The kernels of a sequence spread over the GPU, float64.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk is 8 units. Each warp has as many chunks as make K.
typedef GridKernels<DoubleFormat, double> Double;

GridTable forward_table(bool) {
  return {{
      // 64 units, 128
      Double::forward<16, 8, 1, 1, 1>(8),
      Double::forward<16, 8, 2, 2, 2>(8),
      // 256
      Double::forward<16, 8, 4, 4, 4>(1),
      Double::forward<16, 16, 4, 4, 8>(8),
      // 512
      Double::forward<16, 8, 8, 6, 4>(1),
      Double::forward<16, 16, 8, 5, 4>(2),
      // 768
      Double::forward<16, 8, 12, 6, 4>(2),
  }};
}

GridTable backward_table(bool) {
  return {{
      // 64 units, 128
      Double::backward<16, 8, 3, 3, 3>(8, 1000),
      Double::backward<16, 8, 6, 6, 6>(8, 1000),
      // 256
      Double::backward<16, 8, 8, 8, 8, 12>(1, 1000),
      Double::backward<32, 8, 8, 4, 8, 12>(8),
      // 512
      Double::backward<16, 8, 12, 3, 8, 16>(1, 900),
      Double::backward<16, 16, 16, 9, 4, 12>(2, 1000),
      // 768
      Double::backward<16, 8, 36, 15, 6>(2, 800),
  }};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(double)
