// The third step: one kernel for all that is pointwise. It takes raw pointers and counts out by
// itself where a number lies; torch is here only to make and to unpack tensors.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "coupled.h"
#include "gate_math.cuh"

namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void forward_kernel(const T* __restrict__ sums, const T* __restrict__ old_cell,
                               T* __restrict__ new_h, T* __restrict__ new_cell,
                               T* __restrict__ gates, int64_t batch_size, int64_t state_size) {
  const int64_t index = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= batch_size * state_size) return;
  const int64_t first = index / state_size * 3 * state_size + index % state_size;
  const int64_t second = first + state_size, third = second + state_size;
  const Unit<T> unit = unit_forward(sums[first], sums[second], sums[third], old_cell[index]);
  gates[first] = unit.input_gate;
  gates[second] = unit.output_gate;
  gates[third] = unit.candidate;
  new_cell[index] = unit.new_cell;
  new_h[index] = unit.new_h;
}

template <typename T>
__global__ void backward_kernel(const T* __restrict__ grad_h, const T* __restrict__ grad_cell,
                                const T* __restrict__ new_cell, const T* __restrict__ gates,
                                T* __restrict__ d_sums, T* __restrict__ d_old_cell,
                                int64_t batch_size, int64_t state_size) {
  const int64_t index = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= batch_size * state_size) return;
  const int64_t first = index / state_size * 3 * state_size + index % state_size;
  const int64_t second = first + state_size, third = second + state_size;
  const UnitGradient<T> gradient = unit_backward(grad_h[index], grad_cell[index], gates[first],
                                                 gates[second], gates[third], new_cell[index]);
  d_sums[first] = gradient.d_input_gate;
  d_sums[second] = gradient.d_output_gate;
  d_sums[third] = gradient.d_candidate;
  d_old_cell[index] = gradient.d_old_cell;
}

unsigned blocks_for(int64_t units) { return unsigned((units + kThreads - 1) / kThreads); }

}  // namespace

std::vector<at::Tensor> pointwise_forward(const at::Tensor& sums, const at::Tensor& old_cell) {
  const at::Tensor new_h = at::empty_like(old_cell);
  const at::Tensor new_cell = at::empty_like(old_cell);
  const at::Tensor gates = at::empty_like(sums);
  if (old_cell.numel() == 0) return {new_h, new_cell, gates};
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(sums.scalar_type(), "pointers_forward", [&] {
    forward_kernel<scalar_t><<<blocks_for(old_cell.numel()), kThreads, 0, stream>>>(
        sums.data_ptr<scalar_t>(), old_cell.data_ptr<scalar_t>(), new_h.data_ptr<scalar_t>(),
        new_cell.data_ptr<scalar_t>(), gates.data_ptr<scalar_t>(), old_cell.size(0),
        old_cell.size(1));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {new_h, new_cell, gates};
}

std::vector<at::Tensor> pointwise_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell,
                                           const at::Tensor& new_cell, const at::Tensor& gates) {
  const at::Tensor d_sums = at::empty_like(gates);
  const at::Tensor d_old_cell = at::empty_like(new_cell);
  if (new_cell.numel() == 0) return {d_sums, d_old_cell};
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "pointers_backward", [&] {
    backward_kernel<scalar_t><<<blocks_for(new_cell.numel()), kThreads, 0, stream>>>(
        grad_h.data_ptr<scalar_t>(), grad_cell.data_ptr<scalar_t>(), new_cell.data_ptr<scalar_t>(),
        gates.data_ptr<scalar_t>(), d_sums.data_ptr<scalar_t>(), d_old_cell.data_ptr<scalar_t>(),
        new_cell.size(0), new_cell.size(1));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {d_sums, d_old_cell};
}
