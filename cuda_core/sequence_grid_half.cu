// The kernels of a sequence spread over the GPU, float16.
#include "sequence_grid_backward.cuh"
#include "sequence_grid_forward.cuh"
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <int kUnits, int kRows, int kChunks, int kInRegisters>
GridKernel forward(int wait_clocks) {
  typedef ForwardShape<HalfFormat, lltm_half, kUnits, kRows, kChunks, kInRegisters> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_forward_kernel<Shape>),
                            wait_clocks);
}

template <int kUnits, int kRows, int kChunks, int kInRegisters>
GridKernel backward(int wait_clocks) {
  typedef BackwardShape<HalfFormat, lltm_half, kUnits, kRows, kChunks, kInRegisters> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_backward_kernel<Shape>),
                            wait_clocks);
}

// A chunk is 32 units going forward, of 256 each warp has one; and three going backward.
const GridKernel kForward[] = {
    forward<16, 8, 1, 1>(800),  forward<16, 16, 1, 1>(800),  //
    forward<16, 8, 2, 2>(800),  forward<32, 8, 2, 2>(1000), forward<32, 16, 2, 2>(1000),
    forward<16, 8, 3, 3>(1000), forward<32, 8, 3, 2>(1000), forward<32, 16, 3, 1>(1000),
    forward<16, 8, 4, 4>(900),  forward<32, 8, 4, 2>(1000), forward<32, 16, 4, 2>(1000),
};
const GridKernel kBackward[] = {
    backward<16, 8, 3, 3>(400), backward<16, 16, 3, 3>(400),  //
    backward<16, 8, 6, 6>(400), backward<32, 8, 6, 6>(400),  backward<32, 16, 6, 6>(400),
    backward<16, 8, 9, 9>(400), backward<32, 8, 9, 5>(0),    backward<32, 16, 9, 5>(0),
    backward<16, 8, 12, 12>(0), backward<32, 8, 12, 5>(0),   backward<32, 16, 12, 5>(0),
};

}  // namespace

template <>
GridPlan plan_grid(const SequenceForward<lltm_half>& a, bool) {
  return plan_with(kForward, a);
}
template <>
GridPlan plan_grid(const SequenceBackward<lltm_half>& a, bool) {
  return plan_with(kBackward, a);
}
template <>
int32_t launch_grid(const SequenceForward<lltm_half>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return launch_with(kForward, a, options, stream);
}
template <>
int32_t launch_grid(const SequenceBackward<lltm_half>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return launch_with(kBackward, a, options, stream);
}

}  // namespace lltm
