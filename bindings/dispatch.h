// From tensors to the core: the only dtype dispatch, the device guard and stream, the core's
// status as an exception, and the only place that asks whether this binary was built with CUDA.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>

#include <string>

#include "lltm.h"

#ifdef LLTM_WITH_CUDA
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
// Only where the toolkit has the headers that ATen's wants, and where a library need not name the
// libraries of the libraries that it is linked to. See cublas.h.
#if !defined(_WIN32) && defined(__has_include)
#if __has_include(<cublas_v2.h>) && __has_include(<cublasLt.h>) && __has_include(<cusparse.h>) && \
    __has_include(<cusolverDn.h>)
#define LLTM_WITH_CUBLAS
#endif
#endif
#define LLTM_CORE(op, name, is_cuda) (is_cuda ? &lltm_##op##_cuda_##name : &lltm_##op##_cpu_##name)
#define LLTM_CUDA_CORE(op, name) (&lltm_##op##_cuda_##name)
#else
#define LLTM_CORE(op, name, is_cuda) (&lltm_##op##_cpu_##name)
#define LLTM_CUDA_CORE(op, name) (nullptr)
#endif

namespace lltm_bindings {

#ifdef LLTM_WITH_CUDA
constexpr bool kWithCuda = true;
inline const char* cuda_archs() { return lltm_cuda_archs(); }
inline int64_t cuda_version() { return CUDART_VERSION; }
inline const char* cuda_error(int32_t status) {
  return cudaGetErrorString(static_cast<cudaError_t>(status));
}

// A number in host memory that kernels of every GPU can write to, or null. While a graph is
// captured, too. It is never freed: a kernel may outlive whoever asks.
inline int32_t* new_host_number() {
  void* number = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const bool ok = cudaHostAlloc(&number, sizeof(int32_t), cudaHostAllocPortable) == cudaSuccess;
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (!ok) {
    cudaGetLastError();  // nobody else shall meet it
    return nullptr;
  }
  return new (number) int32_t(0);
}

inline int32_t numbers_to_cuda(int64_t count, const int64_t* numbers, int64_t* to,
                               CUstream_st* stream) {
  return lltm_numbers_to_cuda(count, numbers, to, stream);
}

inline int64_t sequence_gradients_workspace(int64_t rows, int64_t batch_size, int64_t state_size,
                                            int64_t input_features) {
  return lltm_sequence_gradients_workspace_cuda(rows, batch_size, state_size, input_features);
}

inline int64_t multiply_workspace(int64_t rows, int64_t inner, int64_t columns) {
  return lltm_multiply_workspace_cuda_float(rows, inner, columns);
}

// Makes the device of `like` current for its lifetime; `stream` is the caller's stream there.
struct DeviceScope {
  explicit DeviceScope(const at::Tensor& like) {
    if (!like.is_cuda()) return;
    guard.set_device(like.device());
    stream = c10::cuda::getCurrentCUDAStream().stream();
  }
  c10::cuda::OptionalCUDAGuard guard;
  CUstream_st* stream = nullptr;
};
#else
constexpr bool kWithCuda = false;
inline const char* cuda_archs() { return ""; }
inline int64_t cuda_version() { return 0; }
inline const char* cuda_error(int32_t) { return ""; }
inline int32_t* new_host_number() { return nullptr; }
inline int32_t numbers_to_cuda(int64_t, const int64_t*, int64_t*, CUstream_st*) { return 0; }
inline int64_t sequence_gradients_workspace(int64_t, int64_t, int64_t, int64_t) { return 0; }
inline int64_t multiply_workspace(int64_t, int64_t, int64_t) { return 0; }

struct DeviceScope {
  explicit DeviceScope(const at::Tensor& like) {
    TORCH_CHECK(!like.is_cuda(), "lltm_decoupled was built without CUDA, and got tensors on ",
                like.device(), ". Rebuild it where torch is a CUDA build and nvcc is found: ",
                "LLTM_WITH_CUDA=1 pip install --no-build-isolation --force-reinstall --no-deps .");
  }
  CUstream_st* stream = nullptr;
};
#endif

// The core's functions for one of torch's scalar types on one device, and the type in which the
// core knows the same memory.
template <typename T>
struct Core;

#define LLTM_DEFINE_CORE(torch_type, core_type, compute_type, name)                              \
  template <>                                                                                    \
  struct Core<torch_type> {                                                                      \
    typedef torch_type Scalar;                                                                   \
    typedef core_type Storage;                                                                   \
    typedef compute_type Compute;                                                                \
    explicit Core(bool is_cuda)                                                                  \
        : cell_forward(LLTM_CORE(cell_forward, name, is_cuda)),                                  \
          cell_backward(LLTM_CORE(cell_backward, name, is_cuda)),                                \
          step_forward(LLTM_CORE(step_forward, name, is_cuda)),                                  \
          step_backward(LLTM_CORE(step_backward, name, is_cuda)),                                \
          cell_fused_forward(LLTM_CUDA_CORE(cell_fused_forward, name)),                          \
          gradient_products(LLTM_CUDA_CORE(gradient_products, name)),                            \
          step_fused_forward(LLTM_CUDA_CORE(step_fused_forward, name)),                          \
          step_fused_backward(LLTM_CUDA_CORE(step_fused_backward, name)),                        \
          sequence_plan(LLTM_CUDA_CORE(sequence_plan, name)),                                    \
          sequence_forward(LLTM_CUDA_CORE(sequence_forward, name)),                              \
          sequence_backward(LLTM_CUDA_CORE(sequence_backward, name)),                            \
          sequence_gradients(LLTM_CUDA_CORE(sequence_gradients, name)),                          \
          sequence_product(LLTM_CUDA_CORE(sequence_product, name)) {}                            \
    decltype(&lltm_cell_forward_cpu_##name) cell_forward;                                        \
    decltype(&lltm_cell_backward_cpu_##name) cell_backward;                                      \
    decltype(&lltm_step_forward_cpu_##name) step_forward;                                        \
    decltype(&lltm_step_backward_cpu_##name) step_backward;                                      \
    decltype(&lltm_cell_fused_forward_cuda_##name) cell_fused_forward;                           \
    decltype(&lltm_gradient_products_cuda_##name) gradient_products;                             \
    decltype(&lltm_step_fused_forward_cuda_##name) step_fused_forward;                           \
    decltype(&lltm_step_fused_backward_cuda_##name) step_fused_backward;                         \
    decltype(&lltm_sequence_plan_cuda_##name) sequence_plan;                                     \
    decltype(&lltm_sequence_forward_cuda_##name) sequence_forward;                               \
    decltype(&lltm_sequence_backward_cuda_##name) sequence_backward;                             \
    decltype(&lltm_sequence_gradients_cuda_##name) sequence_gradients;                           \
    decltype(&lltm_sequence_product_cuda_##name) sequence_product;                               \
                                                                                                 \
    /* A dense tensor's memory, `rows` rows of its last dimension on; null if undefined. */      \
    static Storage* pointer(const at::Tensor& tensor, int64_t rows) {                            \
      if (!tensor.defined()) return nullptr;                                                     \
      return reinterpret_cast<Storage*>(tensor.data_ptr<Scalar>()) + rows * tensor.size(-1);     \
    }                                                                                            \
    /* Of a dense tensor of the compute type, and of a mask. */                                  \
    static Compute* compute_pointer(const at::Tensor& tensor, int64_t rows) {                    \
      if (!tensor.defined()) return nullptr;                                                     \
      return tensor.data_ptr<Compute>() + rows * tensor.size(-1);                                \
    }                                                                                            \
    static const uint8_t* mask_pointer(const at::Tensor& tensor, int64_t rows) {                 \
      if (!tensor.defined()) return nullptr;                                                     \
      return reinterpret_cast<const uint8_t*>(tensor.data_ptr<bool>()) + rows * tensor.size(-1); \
    }                                                                                            \
  };

LLTM_DEFINE_CORE(float, float, float, float)
LLTM_DEFINE_CORE(double, double, double, double)
LLTM_DEFINE_CORE(at::Half, lltm_half, float, half)
LLTM_DEFINE_CORE(at::BFloat16, lltm_bfloat16, float, bfloat16)

#undef LLTM_DEFINE_CORE

// The type that the core computes in.
inline at::ScalarType compute_dtype(const at::Tensor& like) {
  return like.element_size() == 2 ? at::kFloat : like.scalar_type();
}

// Calls work(core, stream) for the dtype and on the device of `like`.
template <typename Work>
void with_core(const at::Tensor& like, const Work& work) {
  const DeviceScope scope(like);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, like.scalar_type(), "lltm_decoupled",
                                  [&] { work(Core<scalar_t>(like.is_cuda()), scope.stream); });
}

inline void check_status(int32_t status, const char* function) {
  TORCH_CHECK(status <= 0, "lltm_decoupled: ", function, ": CUDA error ", std::to_string(status),
              ": ", cuda_error(status));
  TORCH_CHECK(status == 0, "lltm_decoupled: ", function, ": argument ", std::to_string(-status),
              " is invalid");
}

}  // namespace lltm_bindings
