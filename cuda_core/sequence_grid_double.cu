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
      Double::forward_by_two<8, 8, 4, 4, 4>(300),
      Double::forward<16, 8, 8, 4, 4>(300),
      Double::forward_in_turns<16, 16, 8, 6, 4>(1, 800),
      Double::forward_in_turns<16, 16, 8, 5, 12>(2),
      // 640
      Double::forward_by_two<8, 8, 5, 4, 4>(300),
      Double::forward<16, 8, 10, 6, 5>(600),
      Double::forward<16, 16, 10, 7, 4>(600),
      Double::forward_in_turns<16, 8, 10, 6, 5>(3),
      // 768
      Double::forward_by_two<8, 8, 6, 5, 3>(),
      Double::forward_in_turns<16, 8, 12, 6, 8>(3, 500),
      // 1024
      Double::forward_by_two<8, 8, 8, 5, 4>(),
      Double::forward_by_two<8, 16, 8, 6, 4>(600),
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
      Double::backward_by_two<8, 8, 8, 8, 4, 12>(0),
      Double::backward_in_turns<16, 8, 12, 5, 4, 16>(1, 700),
      Double::backward_in_turns<16, 16, 16, 9, 4, 12>(2, 800),
      // 640
      Double::backward_by_two<8, 8, 10, 8, 4, 12>(800),
      Double::backward<16, 8, 20, 10, 4, 12>(800),
      Double::backward_in_turns<16, 8, 20, 10, 4, 12>(5),
      // 768
      Double::backward_by_two<8, 8, 12, 7, 4, 12>(800),
      Double::backward_by_two<8, 16, 12, 8, 4, 12>(0),
      Double::backward_by_two_in_turns<8, 16, 12, 7, 4, 12>(4),
      Double::backward_in_turns<16, 8, 36, 15, 8>(2),
      // 1024
      Double::backward_by_two<8, 8, 16, 8, 4, 12>(800),
      Double::backward_by_two<8, 16, 16, 8, 4, 12>(0),
      Double::backward_by_two_in_turns<8, 16, 16, 9, 4, 12>(4),
  }};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(double)
