// The kernels of a sequence spread over the GPU, float64.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk is 8 units. Each warp has as many chunks as make K.
typedef GridKernels<DoubleFormat, double> Double;

GridTable forward_table(bool) {
  return {{
      // 64 units, 128
      Double::forward_in_turns<16, 8, 1, 1, 1>(8),
      Double::forward_in_turns<16, 8, 2, 2, 2>(8),
      // 256
      Double::forward<16, 8, 4, 4, 4>(600),
      Double::forward_in_turns<16, 16, 4, 4, 8>(8),
      // 512
      Double::forward<16, 8, 8, 4, 4>(300),
      Double::forward_in_turns<16, 16, 8, 6, 4>(1, 800),
      Double::forward_in_turns<16, 16, 8, 5, 4>(2),
      // 768
      Double::forward_in_turns<16, 8, 12, 6, 6>(2, 500),
  }};
}

GridTable backward_table(bool) {
  return {{
      // 64 units, 128
      Double::backward_in_turns<16, 8, 3, 3, 3>(8, 1000),
      Double::backward<16, 8, 4, 4, 4, 12>(700),
      Double::backward_in_turns<16, 8, 6, 6, 6>(8, 1000),
      // 256
      Double::backward<16, 8, 8, 6, 8, 12>(700),
      Double::backward_in_turns<32, 8, 8, 4, 8, 12>(8),
      // 512
      Double::backward_in_turns<16, 8, 12, 3, 4, 16>(1, 700),
      Double::backward_in_turns<16, 16, 16, 8, 4, 12>(2, 800),
      // 768
      Double::backward_in_turns<16, 8, 36, 15, 6>(2),
  }};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(double)
