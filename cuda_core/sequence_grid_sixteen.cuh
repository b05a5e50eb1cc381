// The kernels of a sequence spread over the GPU for a type of 16 bits.
#ifndef LLTM_SEQUENCE_GRID_SIXTEEN_CUH_
#define LLTM_SEQUENCE_GRID_SIXTEEN_CUH_

#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk is 32 units. Each warp has as many chunks as make K.
template <typename Format, typename S>
struct SixteenBitKernels {
  typedef GridKernels<Format, S> Of;

  static GridTable forward_table() {
    return {{
        // 256 units
        Of::template forward<16, 8, 1, 1, 1>(),
        Of::template forward<32, 8, 1, 1, 1>(500),
        Of::template forward_side_by_side<4, 16, 16, 2, 2, 4, 4>(2),
        // 512
        Of::template forward<16, 8, 2, 1, 2>(500),
        Of::template forward<32, 8, 2, 2, 2>(600),
        Of::template forward_side_by_side<2, 16, 16, 2, 2, 4>(8, 500),
        // 640 and 768
        Of::template forward<16, 8, 4, 4, 4, 5>(),
        Of::template forward<32, 8, 2, 2, 2, 10>(500),
        Of::template forward<16, 8, 3, 2, 3>(500),
        Of::template forward_in_turns<32, 8, 3, 3, 3>(2),
        Of::template forward_in_turns<32, 8, 2, 2, 2, 10>(3),
        Of::template forward_side_by_side<2, 16, 16, 4, 4, 4, 5>(4),
        Of::template forward_in_turns<32, 8, 3, 3, 3>(8),
        // 1024
        Of::template forward<16, 8, 4, 2, 4>(500),
        Of::template forward_in_turns<32, 8, 4, 3, 4>(8),
        // 1536
        Of::template forward_in_turns<16, 8, 6, 4, 6>(2, 500),
        Of::template forward_in_turns<16, 16, 6, 4, 12>(4, 600),
        // 2048
        Of::template forward_in_turns<16, 8, 8, 6, 8>(2),
        Of::template forward_in_turns<16, 16, 8, 5, 8>(4),
    }};
  }
  static GridTable backward_table() {
    return {{
        // 256 units
        Of::template backward<16, 8, 2, 2, 2, 12>(300),
        Of::template backward<32, 8, 2, 2, 2, 12>(),
        Of::template backward_in_turns<32, 16, 2, 2, 4, 12>(4, 700),
        // 384
        Of::template backward<16, 8, 3, 3, 3, 12>(),
        Of::template backward<32, 8, 3, 3, 3, 12>(500),
        Of::template backward_in_turns<32, 16, 3, 3, 6, 12>(5, 600),
        // 512
        Of::template backward<16, 8, 4, 4, 4, 12>(),
        Of::template backward<32, 8, 4, 4, 4, 12>(500),
        Of::template backward_in_turns<32, 16, 4, 4, 8, 12>(8, 600),
        // 640
        Of::template backward<16, 8, 5, 5, 5, 12>(500),
        Of::template backward<32, 8, 5, 5, 5, 12>(600),
        Of::template backward<32, 16, 5, 5, 4, 12>(500),
        Of::template backward_in_turns<32, 8, 5, 4, 5, 12>(8),
        // 768
        Of::template backward<16, 8, 6, 6, 6, 12>(500),
        Of::template backward<32, 16, 6, 5, 4, 12>(500),
        Of::template backward_in_turns<32, 8, 6, 5, 6, 12>(8),
        // 1024
        Of::template backward<16, 8, 6, 6, 6, 16>(500),
        Of::template backward_by_two<32, 16, 6, 3, 8>(500),
        Of::template backward_in_turns<32, 16, 6, 3, 4, 16>(4, 600),
        // 1536
        Of::template backward<32, 8, 12, 5, 4, 12>(300),
        Of::template backward_by_two_in_turns<16, 16, 6, 3, 8, 12>(4),
        Of::template backward_in_turns<32, 8, 12, 5, 4, 12>(4),
        // 2048
        Of::template backward_by_two_in_turns<16, 16, 8, 4, 8, 12>(4, 800),
        Of::template backward_in_turns<16, 16, 16, 6, 8, 12>(4),
    }};
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_SIXTEEN_CUH_
