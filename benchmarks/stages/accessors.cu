// The fourth step: the kernel of pointers.cu with packed accessors. They bring sizes and strides
// along and are indexed like tensors; torch has thereby come into the kernel itself.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "coupled.h"
#include "gate_math.cuh"

namespace {

constexpr int kThreads = 256;

// 32-bit indices are faster, and enough for what the ladder measures.
template <typename T, int dimensions>
using Accessor = torch::PackedTensorAccessor32<T, dimensions, torch::RestrictPtrTraits>;

template <typename T, int dimensions>
Accessor<T, dimensions> access(const at::Tensor& tensor) {
  return tensor.packed_accessor32<T, dimensions, torch::RestrictPtrTraits>();
}

template <typename T>
__global__ void forward_kernel(const Accessor<T, 3> sums, const Accessor<T, 2> old_cell,
                               Accessor<T, 2> new_h, Accessor<T, 2> new_cell,
                               Accessor<T, 3> gates) {
  const int index = blockIdx.x * kThreads + threadIdx.x;
  const int row = index / old_cell.size(1), column = index % old_cell.size(1);
  if (row >= old_cell.size(0)) return;
  const Unit<T> unit = unit_forward<T>(sums[row][0][column], sums[row][1][column],
                                       sums[row][2][column], old_cell[row][column]);
  gates[row][0][column] = unit.input_gate;
  gates[row][1][column] = unit.output_gate;
  gates[row][2][column] = unit.candidate;
  new_cell[row][column] = unit.new_cell;
  new_h[row][column] = unit.new_h;
}

template <typename T>
__global__ void backward_kernel(const Accessor<T, 2> grad_h, const Accessor<T, 2> grad_cell,
                                const Accessor<T, 2> new_cell, const Accessor<T, 3> gates,
                                Accessor<T, 3> d_sums, Accessor<T, 2> d_old_cell) {
  const int index = blockIdx.x * kThreads + threadIdx.x;
  const int row = index / new_cell.size(1), column = index % new_cell.size(1);
  if (row >= new_cell.size(0)) return;
  const UnitGradient<T> gradient =
      unit_backward<T>(grad_h[row][column], grad_cell[row][column], gates[row][0][column],
                       gates[row][1][column], gates[row][2][column], new_cell[row][column]);
  d_sums[row][0][column] = gradient.d_input_gate;
  d_sums[row][1][column] = gradient.d_output_gate;
  d_sums[row][2][column] = gradient.d_candidate;
  d_old_cell[row][column] = gradient.d_old_cell;
}

unsigned blocks_for(int64_t units) { return unsigned((units + kThreads - 1) / kThreads); }

}  // namespace

std::vector<at::Tensor> pointwise_forward(const at::Tensor& sums, const at::Tensor& old_cell) {
  const at::Tensor new_h = at::empty_like(old_cell);
  const at::Tensor new_cell = at::empty_like(old_cell);
  const at::Tensor gates = at::empty_like(sums);
  if (old_cell.numel() == 0) return {new_h, new_cell, gates};
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES(sums.scalar_type(), "accessors_forward", [&] {
    forward_kernel<scalar_t><<<blocks_for(old_cell.numel()), kThreads, 0, stream>>>(
        access<scalar_t, 3>(sums), access<scalar_t, 2>(old_cell), access<scalar_t, 2>(new_h),
        access<scalar_t, 2>(new_cell), access<scalar_t, 3>(gates));
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
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "accessors_backward", [&] {
    backward_kernel<scalar_t><<<blocks_for(new_cell.numel()), kThreads, 0, stream>>>(
        access<scalar_t, 2>(grad_h), access<scalar_t, 2>(grad_cell), access<scalar_t, 2>(new_cell),
        access<scalar_t, 3>(gates), access<scalar_t, 3>(d_sums), access<scalar_t, 2>(d_old_cell));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {d_sums, d_old_cell};
}
