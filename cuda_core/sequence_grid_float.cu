// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

// A chunk of K is 16 units, of a format of 16 bits 32, of TF32 the gates of 8 units. Each warp has
// as many chunks as make K. At its own accuracy a step takes longer before it is sent.
const int kClocksOfSplit = 1100;

typedef GridKernels<ShortFloatFormat, float> Short;
typedef GridKernels<SplitFormat, float> Split;
typedef GridKernels<Tf32Format, float> Tf32;
typedef GridKernels<SplitTf32Format, float> SplitTf32;

GridTable forward_table(bool tf32) {
  if (tf32) {
    return {{Short::forward<16, 8, 1, 1, 1>(), Short::forward<16, 16, 1, 1, 2>(),
             Short::forward<16, 8, 2, 2, 2>(), Short::forward<32, 8, 2, 2, 2>(),
             Short::forward<32, 16, 2, 2, 4>(), Short::forward<16, 8, 3, 3, 3>(),
             Short::forward<32, 8, 3, 2, 3>(), Short::forward<16, 8, 4, 4, 4>(),
             Short::forward<32, 8, 4, 2, 4>(), Short::forward<16, 16, 6, 3, 6>(),
             Short::forward<16, 32, 6, 3, 6>(), Short::forward<16, 16, 8, 4, 6>()}};
  }
  return {{Split::forward<16, 8, 2, 2, 2>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 16, 2, 2, 4>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 8, 4, 4, 4>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 16, 4, 3, 8>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 8, 6, 3, 6>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 16, 6, 2, 8>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 8, 8, 2, 8>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 16, 8, 3, 4>(kMostTurns, kClocksOfSplit),
           Split::forward<16, 8, 12, 6, 6>(kMostTurns, kClocksOfSplit)}};
}

GridTable backward_table(bool tf32) {
  if (tf32) {
    return {{Tf32::backward<16, 8, 2, 2, 2, 16>(), Tf32::backward<16, 16, 2, 2, 4, 16>(),
             Tf32::backward<16, 8, 4, 4, 4, 16>(), Tf32::backward<32, 8, 4, 2, 4, 16>(),
             Tf32::backward<16, 8, 8, 8, 8, 12>(), Tf32::backward<16, 16, 8, 4, 8, 12>(),
             Tf32::backward_by_two<16, 8, 8, 8, 8>(800),
             Tf32::backward_by_two<16, 32, 8, 4, 4>(800), Tf32::backward<16, 8, 8, 4, 8, 16>(),
             Tf32::backward<16, 16, 8, 2, 8, 16>(4), Tf32::backward<16, 8, 16, 8, 8, 12>(4)}};
  }
  return {{SplitTf32::backward<16, 8, 3, 3, 3, 16>(), SplitTf32::backward<16, 16, 6, 6, 6>(),
           SplitTf32::backward<16, 8, 8, 5, 6, 12>(), SplitTf32::backward<16, 16, 8, 4, 6, 12>(),
           SplitTf32::backward<16, 8, 18, 7, 10>(), SplitTf32::backward<16, 32, 18, 3, 6>(),
           SplitTf32::backward_by_two<16, 8, 12, 6, 6>(800),
           SplitTf32::backward_by_two<16, 32, 12, 6, 4>(800),
           SplitTf32::backward<16, 8, 16, 5, 8, 12>(), SplitTf32::backward<16, 32, 24, 6, 4>(),
           SplitTf32::backward<16, 8, 36, 12, 6>()}};
}

}  // namespace
}  // namespace lltm

LLTM_DEFINE_GRID(float)
