// The kernels of a sequence spread over the GPU, bfloat16.
#include "sequence_grid_backward.cuh"
#include "sequence_grid_forward.cuh"
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel forward() {
  typedef ForwardShape<Bfloat16Format, lltm_bfloat16, kUnits, kRows, kChunks, kInRegisters, kDepth>
      Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_forward_kernel<Shape>), 8);
}

template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel backward(int most_turns = 8) {
  typedef BackwardShape<Bfloat16Format, lltm_bfloat16, kUnits, kRows, kChunks, kInRegisters, kDepth>
      Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_backward_kernel<Shape>),
                            most_turns);
}

// A chunk is 32 units going forward, of 256 each warp has one; and three going backward.
const GridKernel kForward[] = {
    forward<16, 8, 1, 1, 1>(),  forward<16, 16, 1, 1, 2>(), forward<16, 8, 2, 2, 2>(),
    forward<32, 8, 2, 2, 2>(),  forward<32, 16, 2, 2, 4>(), forward<16, 8, 3, 3, 3>(),
    forward<32, 16, 3, 2, 6>(), forward<16, 8, 4, 4, 4>(),  forward<32, 16, 4, 2, 8>(),
};
const GridKernel kBackward[] = {
    backward<16, 8, 3, 3, 3>(),  backward<16, 16, 3, 3, 6>(),   backward<16, 8, 6, 6, 6>(),
    backward<32, 8, 6, 6, 6>(),  backward<32, 16, 6, 4, 12>(),  backward<16, 8, 9, 9, 9>(),
    backward<32, 16, 9, 3, 9>(), backward<16, 8, 12, 11, 12>(), backward<32, 16, 12, 3, 12>(),
};

}  // namespace

template <>
GridPlan plan_grid(const SequenceForward<lltm_bfloat16>& a, bool) {
  return plan_with(kForward, a);
}
template <>
GridPlan plan_grid(const SequenceBackward<lltm_bfloat16>& a, bool) {
  return plan_with(kBackward, a);
}
template <>
int32_t launch_grid(const SequenceForward<lltm_bfloat16>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return launch_with(kForward, a, options, stream);
}
template <>
int32_t launch_grid(const SequenceBackward<lltm_bfloat16>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return launch_with(kBackward, a, options, stream);
}

}  // namespace lltm
