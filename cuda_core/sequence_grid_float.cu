// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk of K is 16 units, of a format of 16 bits 32, of TF32 the gates of 8. Each warp has as
// many chunks as make K.
typedef GridKernels<ShortFloatFormat, float> Short;
typedef GridKernels<SplitFormat, float> Split;
typedef GridKernels<Tf32Format, float> Tf32;
typedef GridKernels<SplitTf32Format, float> SplitTf32;

GridTable forward_table_of_tf32() {
  return {{
      // 256 units
      Short::forward<16, 8, 1, 1, 1>(500),
      Short::forward<32, 8, 1, 1, 1>(600),
      Short::forward_in_turns<32, 16, 1, 1, 2>(1),
      Short::forward_side_by_side<4, 16, 16, 2, 2, 4, 4>(2),
      // 512
      Short::forward<16, 8, 2, 1, 2>(500),
      Short::forward<32, 8, 2, 2, 2>(600),
      Short::forward_side_by_side<2, 16, 16, 2, 2, 4>(8, 500),
      // 640 and 768
      Short::forward<16, 8, 2, 2, 2, 10>(500),
      Short::forward<32, 8, 2, 2, 2, 10>(500),
      Short::forward<16, 8, 3, 2, 3>(500),
      Short::forward_in_turns<32, 8, 3, 3, 3>(2),
      Short::forward_in_turns<32, 8, 2, 2, 2, 10>(8),
      Short::forward_in_turns<32, 8, 3, 3, 3>(8),
      // 1024
      Short::forward<16, 8, 4, 4, 4>(500),
      Short::forward_in_turns<32, 8, 4, 3, 4>(8),
      // 1536
      Short::forward<32, 8, 6, 3, 4>(300),
      Short::forward_in_turns<16, 16, 4, 2, 8, 12>(8, 800),
      // 2048
      Short::forward_in_turns<16, 8, 8, 6, 8>(2),
      Short::forward_in_turns<16, 16, 8, 4, 12>(8, 700),
  }};
}

GridTable forward_table(bool tf32) {
  if (tf32) return forward_table_of_tf32();
  return {{
      // 256 units
      Split::forward<16, 8, 2, 2, 2>(),
      Split::forward<32, 8, 2, 2, 2>(600),
      Split::forward_in_turns<32, 16, 2, 2, 4>(4),
      // 384
      Split::forward<16, 8, 3, 3, 3>(),
      Split::forward<32, 8, 3, 3, 3>(),
      Split::forward_in_turns<32, 8, 3, 3, 3>(8),
      // 512
      Split::forward<16, 8, 4, 3, 4>(),
      Split::forward<32, 8, 4, 2, 4>(),
      Split::forward_in_turns<16, 16, 4, 4, 8>(8),
      // 640
      Split::forward<16, 8, 4, 3, 4, 10>(),
      Split::forward_in_turns<16, 16, 5, 3, 8>(8),
      // 768
      Split::forward<16, 8, 4, 2, 4, 12>(),
      Split::forward_in_turns<16, 16, 6, 3, 8>(8),
      // 1024
      Split::forward_by_two<8, 8, 4, 4, 4>(500),
      Split::forward<16, 8, 8, 5, 4>(500),
      Split::forward_in_turns<16, 16, 8, 3, 8>(8),
      // 1536
      Split::forward_in_turns<16, 8, 12, 5, 8>(8),
  }};
}

GridTable backward_table_of_tf32() {
  return {{
      // 256 units
      Tf32::backward<16, 8, 2, 2, 2, 16>(),
      Tf32::backward<32, 8, 4, 4, 4>(300),
      Tf32::backward_in_turns<32, 16, 4, 4, 8>(4),
      // 384
      Tf32::backward<16, 8, 3, 2, 3, 16>(),
      Tf32::backward<32, 8, 3, 2, 3, 16>(600),
      Tf32::backward_by_two_in_turns<32, 16, 3, 3, 3>(4),
      // 512
      Tf32::backward<16, 8, 4, 2, 4, 16>(),
      Tf32::backward<32, 8, 4, 2, 4, 16>(500),
      Tf32::backward_by_two_in_turns<32, 16, 4, 3, 4>(4),
      Tf32::backward_in_turns<32, 8, 4, 2, 4, 16>(8),
      // 640
      Tf32::backward<16, 8, 5, 2, 5, 16>(600),
      Tf32::backward<32, 8, 10, 5, 6>(500),
      Tf32::backward_in_turns<32, 8, 10, 6, 6>(8),
      // 768
      Tf32::backward<16, 8, 6, 2, 6, 16>(500),
      Tf32::backward_by_two_in_turns<16, 16, 4, 2, 8, 12>(4),
      Tf32::backward_in_turns<32, 8, 12, 6, 6>(8),
      // 1024
      Tf32::backward_in_turns<16, 8, 8, 5, 4, 16>(1),
      Tf32::backward_by_two_in_turns<16, 16, 4, 2, 4, 16>(4),
      Tf32::backward_in_turns<16, 16, 8, 3, 4, 16>(4),
      // 1536
      Tf32::backward_by_two<16, 16, 12, 6, 4>(800),
      Tf32::backward_by_two_in_turns<16, 16, 12, 6, 6>(2),
      Tf32::backward_in_turns<16, 8, 16, 6, 8, 12>(4),
  }};
}

GridTable backward_table(bool tf32) {
  if (tf32) return backward_table_of_tf32();
  return {{
      // 256 units
      SplitTf32::backward<16, 8, 3, 3, 3, 16>(),
      SplitTf32::backward_in_turns<32, 8, 4, 2, 4, 12>(8, 500),
      // 384
      SplitTf32::backward_by_two<8, 8, 3, 3, 3, 12>(800),
      SplitTf32::backward_by_two<16, 8, 3, 1, 3, 12>(700),
      SplitTf32::backward_by_two<16, 16, 3, 0, 6, 12>(900),
      SplitTf32::backward_by_two_in_turns<16, 16, 3, 0, 6, 12>(4),
      // 512
      SplitTf32::backward_by_two<8, 8, 4, 4, 4, 12>(800),
      SplitTf32::backward_by_two<16, 8, 4, 1, 4, 12>(600),
      SplitTf32::backward_by_two<16, 16, 4, 0, 8, 12>(800),
      SplitTf32::backward_by_two_in_turns<16, 16, 4, 0, 8, 12>(4),
      SplitTf32::backward_in_turns<16, 16, 6, 4, 4, 16>(8, 700),
      // 640
      SplitTf32::backward_by_two<8, 8, 6, 4, 4, 10>(800),
      SplitTf32::backward_by_two<16, 8, 5, 1, 4, 12>(700),
      SplitTf32::backward_in_turns<16, 16, 10, 4, 4, 12>(8),
      // 768
      SplitTf32::backward_by_two<8, 8, 6, 4, 4, 12>(800),
      SplitTf32::backward_by_two<16, 8, 9, 2, 3>(700),
      SplitTf32::backward_in_turns<16, 16, 9, 3, 4, 16>(8),
      // 1024
      SplitTf32::backward_by_two<8, 8, 8, 4, 4, 12>(800),
      SplitTf32::backward_by_two<16, 8, 12, 3, 4>(700),
      SplitTf32::backward_by_two_in_turns<16, 16, 12, 3, 6>(4),
      SplitTf32::backward_in_turns<16, 16, 12, 3, 4, 16>(8),
      // 1536
      SplitTf32::backward_by_two_in_turns<16, 16, 18, 9, 4>(4),
      SplitTf32::backward_in_turns<16, 8, 24, 8, 8, 12>(8),
  }};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(float)
