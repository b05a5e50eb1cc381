// The step's two kernels and their C ABI. A thread computes one unit of one row, and strides on.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "grid.cuh"
#include "lltm.h"
#include "lltm_step.h"

namespace lltm {
namespace {

template <typename S>
__global__ void __launch_bounds__(kThreads) kernel(const StepForward<S> a) {
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t count = a.batch_size * H;
  for (int64_t index = first_index(); index < count; index += index_stride()) {
    const int64_t row = divide(index, H);
    const int64_t j = index - row * H;
    const S* const gates = a.gates + row * 3 * H + j;
    step_forward_unit(a, row, j, load(gates[0]), load(gates[H]), load(gates[2 * H]));
  }
}

template <typename S>
__global__ void __launch_bounds__(kThreads) kernel(const StepBackward<S> a) {
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t count = a.batch_size * H;
  for (int64_t index = first_index(); index < count; index += index_stride()) {
    const int64_t row = divide(index, H);
    step_backward_unit(a, row, index - row * H, a.d_h != nullptr,
                       a.d_h ? load(a.d_h[index]) : ComputeType<S>(0));
  }
}

}  // namespace

template <typename Arguments>
int32_t launch(const Arguments& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a)) return status;
  return launch_dependent(kernel, grid_of(a.batch_size * a.state_size), kThreads, stream, a);
}

template int32_t launch(const StepForward<float>&, cudaStream_t);
template int32_t launch(const StepForward<double>&, cudaStream_t);
template int32_t launch(const StepForward<lltm_half>&, cudaStream_t);
template int32_t launch(const StepForward<lltm_bfloat16>&, cudaStream_t);
template int32_t launch(const StepBackward<float>&, cudaStream_t);
template int32_t launch(const StepBackward<double>&, cudaStream_t);
template int32_t launch(const StepBackward<lltm_half>&, cudaStream_t);
template int32_t launch(const StepBackward<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_STEP_CUDA(name, type, compute)                                                \
  int32_t lltm_step_forward_cuda_##name(                                                          \
      int64_t batch_size, int64_t state_size, type* gates, const uint8_t* keep_h,                 \
      const uint8_t* keep_cell, const type* old_h, compute* cell, type* new_h, type* state_h,     \
      type* new_cell, CUstream_st* stream) noexcept {                                             \
    const lltm::StepForward<type> arguments = {batch_size, state_size, gates, keep_h,  keep_cell, \
                                               old_h,      cell,       new_h, state_h, new_cell}; \
    return lltm::launch(arguments, stream);                                                       \
  }                                                                                               \
  int32_t lltm_step_backward_cuda_##name(                                                         \
      int64_t batch_size, int64_t state_size, const type* grad_output, const type* activations,   \
      const type* new_cell, const uint8_t* keep_h, const uint8_t* keep_cell, type* d_h,           \
      compute* d_cell, type* d_gates, CUstream_st* stream) noexcept {                             \
    const lltm::StepBackward<type> arguments = {batch_size, state_size, grad_output, activations, \
                                                new_cell,   keep_h,     keep_cell,   d_h,         \
                                                d_cell,     d_gates};                             \
    return lltm::launch(arguments, stream);                                                       \
  }

LLTM_DEFINE_STEP_CUDA(float, float, float)
LLTM_DEFINE_STEP_CUDA(double, double, double)
LLTM_DEFINE_STEP_CUDA(half, lltm_half, float)
LLTM_DEFINE_STEP_CUDA(bfloat16, lltm_bfloat16, float)
