// The C ABI of sequences in one launch.
#include "lltm.h"
#include "sequence_paths.cuh"

namespace lltm {

namespace {

template <template <typename> class Arguments, typename S>
int32_t plan(bool tf32, const SequenceShape& shape, lltm_sequence_plan* plan) {
  // Two arguments come before those of the shape.
  const int32_t status = check(shape);
  if (status) return status - 2;
  *plan = {LLTM_SEQUENCE_NONE, 0, 0};
  if (shape.steps > kMostSteps) return 0;
  if (fits_block<S>(shape.batch_size, shape.state_size)) {
    plan->path = LLTM_SEQUENCE_BLOCK;
    return 0;
  }
  Arguments<S> arguments = {};
  arguments.shape = shape;
  const GridPlan grid = plan_grid(arguments, tf32);
  if (grid.blocks > 0) *plan = {LLTM_SEQUENCE_GRID, grid.blocks, grid.workspace};
  return 0;
}

template <template <typename> class Arguments, typename S>
int32_t launch(const Arguments<S>& a, const void* outer, int32_t outer_number,
               const lltm_sequence_options* options, int32_t options_number, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a.shape)) return status;
  if (options) {
    if (outer) return -outer_number;
    if (!options->workspace || options->steps_before < 0) return -options_number;
    // Of these sizes no plan has a workspace.
    if (fits_block<S>(a.shape.batch_size, a.shape.state_size)) return -options_number;
    return launch_grid(a, *options, stream);
  }
  if (!fits_block<S>(a.shape.batch_size, 0)) return -2;
  if (!fits_block<S>(0, a.shape.state_size)) return -3;
  return launch_block(a, stream);
}

// As many as an argument of a kernel holds.
const int kMostNumbers = 480;

template <int kMost>
struct Numbers {
  int64_t values[kMost];
};

// A template, for nvcc exports the stub of any other kernel.
template <int kMost>
__global__ void numbers_kernel(const Numbers<kMost> numbers, int count, int64_t* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = numbers.values[i];
}

}  // namespace
}  // namespace lltm

int32_t lltm_numbers_to_cuda(int64_t count, const int64_t* numbers, int64_t* to,
                             CUstream_st* stream) noexcept {
  if (count < 0) return -1;
  if (count > 0 && !numbers) return -2;
  if (count > 0 && !to) return -3;
  const int64_t most = lltm::kMostNumbers;
  lltm::Numbers<lltm::kMostNumbers> some;
  for (int64_t first = 0; first < count; first += most) {
    const int64_t n = count - first < most ? count - first : most;
    for (int64_t i = 0; i < n; ++i) some.values[i] = numbers[first + i];
    lltm::numbers_kernel<<<4, most / 4, 0, stream>>>(some, static_cast<int>(n), to + first);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) return static_cast<int32_t>(status);
  }
  return 0;
}

#define LLTM_DEFINE_SEQUENCE(name, type, compute)                                                  \
  int32_t lltm_sequence_plan_cuda_##name(int32_t backward, int32_t tf32, int64_t steps,            \
                                         int64_t batch_size, int64_t state_size,                   \
                                         lltm_sequence_plan* plan) noexcept {                      \
    if (!plan) return -6;                                                                          \
    const lltm::SequenceShape shape = {steps, batch_size, state_size, state_size, false, nullptr}; \
    return backward ? lltm::plan<lltm::SequenceBackward, type>(tf32 != 0, shape, plan)             \
                    : lltm::plan<lltm::SequenceForward, type>(tf32 != 0, shape, plan);             \
  }                                                                                                \
  int32_t lltm_sequence_forward_cuda_##name(                                                       \
      int64_t steps, int64_t batch_size, int64_t state_size, const type* weights,                  \
      int64_t weights_stride, int32_t reverse, const int64_t* first_rows, const type* bias,        \
      type* gates, const type* h0, const type* c0, compute* cell, type* output, type* new_cell,    \
      type* h_n, type* c_n, const lltm_sequence_options* options, CUstream_st* stream) noexcept {  \
    const lltm::SequenceForward<type> arguments = {                                                \
        {steps, batch_size, state_size, weights_stride, reverse != 0, first_rows},                 \
        weights,                                                                                   \
        bias,                                                                                      \
        gates,                                                                                     \
        h0,                                                                                        \
        c0,                                                                                        \
        cell,                                                                                      \
        output,                                                                                    \
        new_cell,                                                                                  \
        h_n,                                                                                       \
        c_n};                                                                                      \
    return lltm::launch(arguments, h0, 10, options, 17, stream);                                   \
  }                                                                                                \
  int32_t lltm_sequence_backward_cuda_##name(                                                      \
      int64_t steps, int64_t batch_size, int64_t state_size, const type* weights,                  \
      int64_t weights_stride, int32_t reverse, const int64_t* first_rows, const type* grad_output, \
      const type* activations, const type* new_cell, const type* d_h_n, const type* d_c_n,         \
      compute* d_cell, type* d_h0, type* d_c0, type* d_gates,                                      \
      const lltm_sequence_options* options, CUstream_st* stream) noexcept {                        \
    const lltm::SequenceBackward<type> arguments = {                                               \
        {steps, batch_size, state_size, weights_stride, reverse != 0, first_rows},                 \
        weights,                                                                                   \
        grad_output,                                                                               \
        activations,                                                                               \
        new_cell,                                                                                  \
        d_h_n,                                                                                     \
        d_c_n,                                                                                     \
        d_cell,                                                                                    \
        d_h0,                                                                                      \
        d_c0,                                                                                      \
        d_gates};                                                                                  \
    return lltm::launch(arguments, d_h0, 14, options, 17, stream);                                 \
  }

LLTM_DEFINE_SEQUENCE(float, float, float)
LLTM_DEFINE_SEQUENCE(double, double, double)
LLTM_DEFINE_SEQUENCE(half, lltm_half, float)
LLTM_DEFINE_SEQUENCE(bfloat16, lltm_bfloat16, float)
