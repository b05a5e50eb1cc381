// The kernels of a sequence spread over the GPU, float32: at its own accuracy, and at that of TF32.
#include "sequence_grid_backward.cuh"
#include "sequence_grid_forward.cuh"
#include "sequence_grid_launch.cuh"

namespace lltm {
namespace {

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel forward() {
  typedef ForwardShape<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_forward_kernel<Shape>), 8);
}

template <typename Format, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth>
GridKernel backward(int most_turns = 8) {
  typedef BackwardShape<Format, float, kUnits, kRows, kChunks, kInRegisters, kDepth> Shape;
  return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_backward_kernel<Shape>),
                            most_turns);
}

// A chunk is 16 units, of 256 each warp has two going forward and six going backward; as halves,
// 32 units.
const GridKernel kForward[] = {
    forward<SplitFormat, 16, 8, 2, 2, 2>(), forward<SplitFormat, 16, 16, 2, 2, 4>(),
    forward<SplitFormat, 16, 8, 4, 4, 4>(), forward<SplitFormat, 16, 16, 4, 3, 8>(),
    forward<SplitFormat, 16, 8, 6, 3, 6>(), forward<SplitFormat, 16, 16, 6, 2, 8>(),
    forward<SplitFormat, 16, 8, 8, 2, 8>(), forward<SplitFormat, 16, 16, 8, 2, 8>(),
};
const GridKernel kForwardTf32[] = {
    forward<ShortFloatFormat, 16, 8, 1, 1, 1>(),  forward<ShortFloatFormat, 16, 16, 1, 1, 2>(),
    forward<ShortFloatFormat, 16, 8, 2, 2, 2>(),  forward<ShortFloatFormat, 32, 8, 2, 2, 2>(),
    forward<ShortFloatFormat, 32, 16, 2, 2, 4>(), forward<ShortFloatFormat, 16, 8, 3, 3, 3>(),
    forward<ShortFloatFormat, 32, 8, 3, 2, 3>(),  forward<ShortFloatFormat, 16, 8, 4, 4, 4>(),
    forward<ShortFloatFormat, 32, 8, 4, 2, 4>(),
};
const GridKernel kBackward[] = {
    backward<SplitTf32Format, 16, 8, 6, 6, 6>(),   backward<SplitTf32Format, 16, 16, 6, 6, 6>(),
    backward<SplitTf32Format, 16, 8, 12, 8, 12>(), backward<SplitTf32Format, 32, 8, 12, 3, 8>(),
    backward<SplitTf32Format, 16, 8, 18, 7, 10>(), backward<SplitTf32Format, 16, 32, 18, 3, 6>(),
    backward<SplitTf32Format, 16, 8, 24, 7, 10>(), backward<SplitTf32Format, 16, 32, 24, 6, 4>(),
};
const GridKernel kBackwardTf32[] = {
    backward<Tf32Format, 16, 8, 6, 6, 6>(),    backward<Tf32Format, 16, 16, 6, 6, 12>(),
    backward<Tf32Format, 16, 8, 12, 12, 12>(), backward<Tf32Format, 32, 8, 12, 5, 12>(),
    backward<Tf32Format, 16, 8, 18, 10, 12>(), backward<Tf32Format, 16, 32, 18, 8, 12>(),
    backward<Tf32Format, 16, 8, 24, 10, 12>(), backward<Tf32Format, 16, 32, 24, 8, 12>(2),
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
