// From tensors to pointers: check, allocate, call the core, look at its status.
#include <ATen/ATen.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>

#include "swiglu.h"

#ifdef SWIGLU_WITH_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#define SWIGLU_CORE(pass, name, is_cuda) \
  (is_cuda ? &swiglu_##pass##_cuda_##name : &swiglu_##pass##_cpu_##name)
#else
#define SWIGLU_CORE(pass, name, is_cuda) (&swiglu_##pass##_cpu_##name)
#endif

namespace {

// Calls work(forward, backward, stream) with the core's functions for input's dtype and device.
template <typename Work>
void with_core(const at::Tensor& input, const Work& work) {
  const bool is_cuda = input.is_cuda();
  CUstream_st* stream = nullptr;
#ifdef SWIGLU_WITH_CUDA
  c10::cuda::OptionalCUDAGuard guard;  // the tensor's GPU need not be the current one
  if (is_cuda) {
    guard.set_device(input.device());
    stream = c10::cuda::getCurrentCUDAStream().stream();
  }
#else
  TORCH_CHECK(!is_cuda, "swiglu was built without CUDA, and got a tensor on ", input.device());
#endif
  if (input.scalar_type() == at::kDouble) {
    work(double(), SWIGLU_CORE(forward, double, is_cuda), SWIGLU_CORE(backward, double, is_cuda),
         stream);
  } else {
    work(float(), SWIGLU_CORE(forward, float, is_cuda), SWIGLU_CORE(backward, float, is_cuda),
         stream);
  }
}

void check_input(const at::Tensor& input) {
  TORCH_CHECK(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble,
              "swiglu: expected input of float32 or float64, got ", input.scalar_type());
  TORCH_CHECK(input.dim() >= 1 && input.size(-1) % 2 == 0,
              "swiglu: expected input of (..., 2 * width), got ", input.sizes());
}

void check_status(int32_t status) {
  TORCH_CHECK(status <= 0, "swiglu: CUDA error ", status);
  TORCH_CHECK(status == 0, "swiglu: argument ", -status, " of the core is invalid");
}

std::vector<int64_t> output_shape(const at::Tensor& input) {
  std::vector<int64_t> shape = input.sizes().vec();
  shape.back() /= 2;
  return shape;
}

// (..., 2 * width) -> (..., width)
at::Tensor swiglu_forward(const at::Tensor& input) {
  check_input(input);
  const at::Tensor dense = input.contiguous();  // any strides come in; the core takes dense arrays
  const at::Tensor output = at::empty(output_shape(input), input.options());
  const int64_t width = input.size(-1) / 2;
  with_core(dense, [&](auto zero, auto forward, auto, CUstream_st* stream) {
    typedef decltype(zero) T;
    check_status(forward(width ? output.numel() / width : 0, width, dense.data_ptr<T>(),
                         output.data_ptr<T>(), stream));
  });
  return output;
}

at::Tensor swiglu_backward(const at::Tensor& grad_output, const at::Tensor& input) {
  check_input(input);
  TORCH_CHECK(grad_output.sizes() == at::IntArrayRef(output_shape(input)) &&
                  grad_output.scalar_type() == input.scalar_type() &&
                  grad_output.device() == input.device(),
              "swiglu: grad_output has not the output's shape, dtype and device");
  const at::Tensor dense = input.contiguous();
  const at::Tensor grad =
      grad_output.contiguous();  // the gradient of a sum has no memory of its own
  const at::Tensor d_input = at::empty(input.sizes(), input.options());
  const int64_t width = input.size(-1) / 2;
  with_core(dense, [&](auto zero, auto, auto backward, CUstream_st* stream) {
    typedef decltype(zero) T;
    check_status(backward(width ? grad.numel() / width : 0, width, grad.data_ptr<T>(),
                          dense.data_ptr<T>(), d_input.data_ptr<T>(), stream));
  });
  return d_input;
}

}  // namespace

TORCH_LIBRARY(swiglu, m) {
  m.def("swiglu(Tensor input) -> Tensor");
  m.def("swiglu_backward(Tensor grad_output, Tensor input) -> Tensor");
}

TORCH_LIBRARY_IMPL(swiglu, CPU, m) {
  m.impl("swiglu", swiglu_forward);
  m.impl("swiglu_backward", swiglu_backward);
}

// In a build without CUDA too: the error then says that, and not that there is no such operator.
TORCH_LIBRARY_IMPL(swiglu, CUDA, m) {
  m.impl("swiglu", swiglu_forward);
  m.impl("swiglu_backward", swiglu_backward);
}

// Python can import the library now, which registers what is above.
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
