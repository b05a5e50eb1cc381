// One step of a sequence with its recurrent product, in one kernel; for small sizes.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "fused_product.cuh"
#include "lltm.h"
#include "lltm_step.h"

namespace lltm {
namespace {

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads)
    kernel(const StepFused<StepForward<S>, S> a, int64_t unit_tiles) {
  const int64_t H = a.step.state_size;
  const Place place(unit_tiles);
  await_earlier_kernels();
  const bool inside = place.row < a.step.batch_size && place.unit < H;
  // Threads outside compute what the first row or unit does, and drop it.
  const int64_t x_row = inside ? place.row : 0;
  const int64_t w_row = inside ? place.unit : 0;
  const Line<S> h = {a.operand + x_row * H};
  const Line<S> weights[3] = {{a.weights + w_row * a.weights_stride},
                              {a.weights + (H + w_row) * a.weights_stride},
                              {a.weights + (2 * H + w_row) * a.weights_stride}};
  ComputeType<S> sums[3];
  fused_product<kAligned>(sums, place.split, H, h, weights);
  if (place.split != 0 || !inside) return;
  const S* const gates = a.step.gates + place.row * 3 * H + place.unit;
  step_forward_unit(a.step, place.row, place.unit, load(gates[0]) + sums[0],
                    load(gates[H]) + sums[1], load(gates[2 * H]) + sums[2]);
}

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads)
    kernel(const StepFused<StepBackward<S>, S> a, int64_t unit_tiles) {
  const int64_t H = a.step.state_size;
  const Place place(unit_tiles);
  await_earlier_kernels();
  const bool inside = place.row < a.step.batch_size && place.unit < H;
  const int64_t x_row = inside ? place.row : 0;
  const int64_t w_row = inside ? place.unit : 0;
  const Line<S> d_next_gates = {a.operand + x_row * 3 * H};
  const Line<S> weights[1] = {{a.weights + w_row * a.weights_stride}};
  ComputeType<S> sum[1];
  fused_product<kAligned>(sum, place.split, 3 * H, d_next_gates, weights);
  if (place.split != 0 || !inside) return;
  if (a.step.d_h) sum[0] += load(a.step.d_h[place.row * H + place.unit]);
  step_backward_unit(a.step, place.row, place.unit, true, sum[0]);
}

}  // namespace

// Before the argument that a step calls i, the fused function has two more.
template <typename Step, typename S>
int32_t check(const StepFused<Step, S>& a) {
  const int32_t status = check(a.step);
  if (status) return status <= -3 ? status - 2 : status;
  if (is_empty(a.step)) return 0;
  if (!fits_stride(a.step.state_size, a.step.state_size)) return -2;
  if (!a.weights) return -3;
  return 0;
}

template <typename Step, typename S>
int32_t launch(const StepFused<Step, S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a.step)) return status;
  const int64_t unit_tiles = unit_tiles_of(a.step.state_size);
  const int64_t blocks = blocks_of(a.step.batch_size, unit_tiles);
  if (blocks < 0) return -1;
  const unsigned grid = static_cast<unsigned>(blocks);
  const bool aligned = a.step.state_size % kGroup == 0 && a.weights_stride % kGroup == 0 &&
                       is_aligned(a.weights) && is_aligned(a.operand);
  if (aligned) return launch_dependent(kernel<true>, grid, kThreads, stream, a, unit_tiles);
  return launch_dependent(kernel<false>, grid, kThreads, stream, a, unit_tiles);
}

#define LLTM_INSTANTIATE(S)                                                   \
  template int32_t launch(const StepFused<StepForward<S>, S>&, cudaStream_t); \
  template int32_t launch(const StepFused<StepBackward<S>, S>&, cudaStream_t);

LLTM_INSTANTIATE(float)
LLTM_INSTANTIATE(double)
LLTM_INSTANTIATE(lltm_half)
LLTM_INSTANTIATE(lltm_bfloat16)

}  // namespace lltm

#define LLTM_DEFINE_STEP_FUSED(name, type, compute)                                            \
  int32_t lltm_step_fused_forward_cuda_##name(                                                 \
      int64_t batch_size, int64_t state_size, const type* weights, int64_t weights_stride,     \
      type* gates, const uint8_t* keep_h, const uint8_t* keep_cell, const type* old_h,         \
      compute* cell, type* new_h, type* new_cell, CUstream_st* stream) noexcept {              \
    if (state_size >= 0 && !lltm::fits_stride(state_size, weights_stride)) return -4;          \
    if (!old_h && batch_size > 0 && state_size > 0) return -8;                                 \
    const lltm::StepForward<type> step = {batch_size, state_size, gates, keep_h,  keep_cell,   \
                                          old_h,      cell,       new_h, nullptr, new_cell};   \
    const lltm::StepFused<lltm::StepForward<type>, type> arguments = {step, weights,           \
                                                                      weights_stride, old_h};  \
    return lltm::launch(arguments, stream);                                                    \
  }                                                                                            \
  int32_t lltm_step_fused_backward_cuda_##name(                                                \
      int64_t batch_size, int64_t state_size, const type* weights_t, const type* d_next_gates, \
      const type* grad_output, const type* activations, const type* new_cell,                  \
      const uint8_t* keep_h, const uint8_t* keep_cell, type* later_d_h, compute* d_cell,       \
      type* d_gates, CUstream_st* stream) noexcept {                                           \
    if (!d_next_gates && batch_size > 0 && state_size > 0) return -4;                          \
    const lltm::StepBackward<type> step = {batch_size, state_size, grad_output, activations,   \
                                           new_cell,   keep_h,     keep_cell,   later_d_h,     \
                                           d_cell,     d_gates};                               \
    const lltm::StepFused<lltm::StepBackward<type>, type> arguments = {                        \
        step, weights_t, 3 * state_size, d_next_gates};                                        \
    return lltm::launch(arguments, stream);                                                    \
  }

LLTM_DEFINE_STEP_FUSED(float, float, float)
LLTM_DEFINE_STEP_FUSED(double, double, double)
LLTM_DEFINE_STEP_FUSED(half, lltm_half, float)
LLTM_DEFINE_STEP_FUSED(bfloat16, lltm_bfloat16, float)
