// The cell's two kernels and their C ABI. A thread computes one unit of one row, and strides on.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "grid.cuh"
#include "lltm.h"
#include "lltm_cell.h"
#include "lltm_math.h"
#include "lltm_types.h"

namespace lltm {
namespace {

template <typename S>
__device__ __forceinline__ ComputeType<S> load_gate(const S* gates, const S* bias, int64_t unit) {
  return bias ? load(gates[unit]) + load(bias[unit]) : load(gates[unit]);
}

template <typename S>
__global__ void __launch_bounds__(kThreads) kernel(const CellForward<S> a) {
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t count = a.batch_size * H;
  for (int64_t index = first_index(); index < count; index += index_stride()) {
    const int64_t row = divide(index, H);
    const int64_t j = index - row * H;
    const S* gates = a.gates + row * 3 * H;
    const CellState<ComputeType<S>> state =
        cell_forward(load_gate(gates, a.bias, j), load_gate(gates, a.bias, H + j),
                     load_gate(gates, a.bias, 2 * H + j), load(a.old_cell[index]));
    store(state.new_h, a.new_h + index);
    store(state.new_cell, a.new_cell + index);
    if (a.input_gate) store(state.input_gate, a.input_gate + index);
    if (a.output_gate) store(state.output_gate, a.output_gate + index);
    if (a.candidate_cell) store(state.candidate_cell, a.candidate_cell + index);
  }
}

template <typename S>
__global__ void __launch_bounds__(kThreads) kernel(const CellBackward<S> a) {
  typedef ComputeType<S> T;
  await_earlier_kernels();
  const int64_t H = a.state_size;
  const int64_t count = a.batch_size * H;
  for (int64_t index = first_index(); index < count; index += index_stride()) {
    const int64_t row = divide(index, H);
    const int64_t j = index - row * H;
    const S* gates = a.gates + row * 3 * H;
    const CellGradient<T> gradient =
        cell_backward(a.grad_h != nullptr, a.grad_h ? load(a.grad_h[index]) : T(0),
                      a.grad_cell ? load(a.grad_cell[index]) : T(0), load_gate(gates, a.bias, j),
                      load_gate(gates, a.bias, H + j), load_gate(gates, a.bias, 2 * H + j),
                      load(a.new_cell[index]));
    S* d_gates = a.d_gates + row * 3 * H;
    store(gradient.d_input, d_gates + j);
    store(gradient.d_output, d_gates + H + j);
    store(gradient.d_candidate, d_gates + 2 * H + j);
    store(gradient.d_old_cell, a.d_old_cell + index);
  }
}

}  // namespace

template <typename Arguments>
int32_t launch(const Arguments& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a)) return status;
  return launch_dependent(kernel, grid_of(a.batch_size * a.state_size), kThreads, stream, a);
}

template int32_t launch(const CellForward<float>&, cudaStream_t);
template int32_t launch(const CellForward<double>&, cudaStream_t);
template int32_t launch(const CellForward<lltm_half>&, cudaStream_t);
template int32_t launch(const CellForward<lltm_bfloat16>&, cudaStream_t);
template int32_t launch(const CellBackward<float>&, cudaStream_t);
template int32_t launch(const CellBackward<double>&, cudaStream_t);
template int32_t launch(const CellBackward<lltm_half>&, cudaStream_t);
template int32_t launch(const CellBackward<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_CELL_CUDA(name, type)                                                          \
  int32_t lltm_cell_forward_cuda_##name(int64_t batch_size, int64_t state_size, const type* gates, \
                                        const type* bias, const type* old_cell, type* new_h,       \
                                        type* new_cell, type* input_gate, type* output_gate,       \
                                        type* candidate_cell, CUstream_st* stream) noexcept {      \
    const lltm::CellForward<type> arguments = {batch_size,  state_size,    gates,    bias,         \
                                               old_cell,    new_h,         new_cell, input_gate,   \
                                               output_gate, candidate_cell};                       \
    return lltm::launch(arguments, stream);                                                        \
  }                                                                                                \
  int32_t lltm_cell_backward_cuda_##name(                                                          \
      int64_t batch_size, int64_t state_size, const type* grad_h, const type* grad_cell,           \
      const type* gates, const type* bias, const type* new_cell, type* d_gates, type* d_old_cell,  \
      CUstream_st* stream) noexcept {                                                              \
    const lltm::CellBackward<type> arguments = {batch_size, state_size, grad_h,  grad_cell, gates, \
                                                bias,       new_cell,   d_gates, d_old_cell};      \
    return lltm::launch(arguments, stream);                                                        \
  }

LLTM_DEFINE_CELL_CUDA(float, float)
LLTM_DEFINE_CELL_CUDA(double, double)
LLTM_DEFINE_CELL_CUDA(half, lltm_half)
LLTM_DEFINE_CELL_CUDA(bfloat16, lltm_bfloat16)

#define LLTM_STRING_(...) #__VA_ARGS__
#define LLTM_STRING(...) LLTM_STRING_(__VA_ARGS__)

const char* lltm_cuda_archs(void) noexcept {
#ifdef __CUDA_ARCH_LIST__
  return LLTM_STRING(__CUDA_ARCH_LIST__);
#else
  return "";
#endif
}
