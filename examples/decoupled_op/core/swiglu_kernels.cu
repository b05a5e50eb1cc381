// SwiGLU on a GPU. Kernels are templates; their explicit users are the C functions below, in the
// same file: nvcc emits nothing for a template that only a .cpp asks for.
#include <cuda_runtime.h>

#include "swiglu.h"
#include "swiglu_math.h"

namespace {

constexpr int kThreads = 256;

// One thread a number, striding on where the grid is smaller than the work.
unsigned int blocks(int64_t count) {
  const int64_t needed = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned int>(needed < 65535 ? needed : 65535);
}

template <typename T>
__global__ void forward_kernel(int64_t count, int64_t width, const T* input, T* output) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    swiglu::forward(i, width, input, output);
  }
}

template <typename T>
__global__ void backward_kernel(int64_t count, int64_t width, const T* grad_output, const T* input,
                                T* d_input) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    swiglu::backward(i, width, grad_output, input, d_input);
  }
}

}  // namespace

// A launch of no blocks is an error, so that empty work returns before it.
#define SWIGLU_DEFINE_CUDA(name, type)                                                             \
  int32_t swiglu_forward_cuda_##name(int64_t rows, int64_t width, const type* input, type* output, \
                                     CUstream_st* stream) noexcept {                               \
    const int32_t status = swiglu::check(rows, width);                                             \
    const int64_t count = rows * width;                                                            \
    if (status || count == 0) return status;                                                       \
    forward_kernel<<<blocks(count), kThreads, 0, stream>>>(count, width, input, output);           \
    return static_cast<int32_t>(cudaGetLastError());                                               \
  }                                                                                                \
  int32_t swiglu_backward_cuda_##name(int64_t rows, int64_t width, const type* grad_output,        \
                                      const type* input, type* d_input,                            \
                                      CUstream_st* stream) noexcept {                              \
    const int32_t status = swiglu::check(rows, width);                                             \
    const int64_t count = rows * width;                                                            \
    if (status || count == 0) return status;                                                       \
    backward_kernel<<<blocks(count), kThreads, 0, stream>>>(count, width, grad_output, input,      \
                                                            d_input);                              \
    return static_cast<int32_t>(cudaGetLastError());                                               \
  }

SWIGLU_DEFINE_CUDA(float, float)
SWIGLU_DEFINE_CUDA(double, double)
