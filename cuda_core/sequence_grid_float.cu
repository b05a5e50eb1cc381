// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_backward.cuh"
#include "sequence_grid_forward.cuh"
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters>
GridKernel forward(int wait_clocks) {
  typedef ForwardShape<Format, float, kUnits, kRows, kChunks, kInRegisters> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_forward_kernel<Shape>),
                            wait_clocks);
}

template <typename Format, int kRows, int kChunks, int kInRegisters>
GridKernel backward(int wait_clocks) {
  typedef BackwardShape<Format, float, 16, kRows, kChunks, kInRegisters> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_backward_kernel<Shape>),
                            wait_clocks);
}

// A chunk is 16 units, of 256 each warp has two going forward and six going backward; as halves,
// 32 units.
const GridKernel kForward[] = {
    forward<SplitFormat, 16, 8, 2, 2>(1000), forward<SplitFormat, 16, 16, 2, 2>(1000),
    forward<SplitFormat, 16, 8, 4, 4>(900),  forward<SplitFormat, 16, 16, 4, 4>(1200),
    forward<SplitFormat, 16, 8, 6, 3>(1000), forward<SplitFormat, 16, 16, 6, 3>(1200),
    forward<SplitFormat, 16, 8, 8, 3>(1000), forward<SplitFormat, 16, 16, 8, 3>(1200),
};
const GridKernel kForwardTf32[] = {
    forward<ShortFloatFormat, 16, 8, 1, 1>(800),   forward<ShortFloatFormat, 16, 16, 1, 1>(800),
    forward<ShortFloatFormat, 16, 8, 2, 2>(800),   forward<ShortFloatFormat, 32, 8, 2, 2>(1000),
    forward<ShortFloatFormat, 32, 16, 2, 2>(1000), forward<ShortFloatFormat, 16, 8, 3, 3>(1000),
    forward<ShortFloatFormat, 32, 8, 3, 2>(1000),  forward<ShortFloatFormat, 32, 16, 3, 2>(1000),
    forward<ShortFloatFormat, 16, 8, 4, 4>(900),   forward<ShortFloatFormat, 32, 8, 4, 1>(1000),
};
const GridKernel kBackward[] = {
    backward<SplitTf32Format, 8, 6, 6>(400), backward<SplitTf32Format, 16, 6, 6>(400),
    backward<SplitTf32Format, 8, 12, 12>(0), backward<SplitTf32Format, 16, 12, 10>(0),
    backward<SplitTf32Format, 8, 18, 10>(0), backward<SplitTf32Format, 32, 18, 6>(0),
    backward<SplitTf32Format, 8, 24, 10>(0), backward<SplitTf32Format, 32, 24, 6>(0),
};
const GridKernel kBackwardTf32[] = {
    backward<Tf32Format, 8, 6, 6>(400),   backward<Tf32Format, 16, 6, 6>(400),
    backward<Tf32Format, 8, 12, 12>(400), backward<Tf32Format, 16, 12, 12>(400),
    backward<Tf32Format, 8, 18, 12>(0),   backward<Tf32Format, 32, 18, 10>(0),
    backward<Tf32Format, 8, 24, 12>(0),   backward<Tf32Format, 32, 24, 10>(0),
};

}  // namespace

template <>
GridPlan plan_grid(const SequenceForward<float>& a, bool tf32) {
  return tf32 ? plan_with(kForwardTf32, a) : plan_with(kForward, a);
}
template <>
GridPlan plan_grid(const SequenceBackward<float>& a, bool tf32) {
  return tf32 ? plan_with(kBackwardTf32, a) : plan_with(kBackward, a);
}
template <>
int32_t launch_grid(const SequenceForward<float>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return options.tf32 ? launch_with(kForwardTf32, a, options, stream)
                      : launch_with(kForward, a, options, stream);
}
template <>
int32_t launch_grid(const SequenceBackward<float>& a, const lltm_sequence_options& options,
                    cudaStream_t stream) {
  return options.tf32 ? launch_with(kBackwardTf32, a, options, stream)
                      : launch_with(kBackward, a, options, stream);
}

}  // namespace lltm
