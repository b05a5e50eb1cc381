// Matrix products on a GPU by cuBLAS itself, on ATen's handle: a call takes a third of the time of
// at::addmm.
#pragma once

#include <climits>

#include "dispatch.h"

#ifdef LLTM_WITH_CUBLAS
#include <ATen/cuda/CUDAContext.h>
#endif

namespace lltm_bindings {

#ifdef LLTM_WITH_CUBLAS

struct GemmSizes {
  cublasOperation_t a_operation;
  int m, n, k, lda, ldb, ldc;
};

inline cublasStatus_t gemm(cublasHandle_t handle, const GemmSizes& s, const float* a,
                           const float* b, float beta, float* c) {
  const float one = 1;
  return cublasSgemm(handle, s.a_operation, CUBLAS_OP_N, s.m, s.n, s.k, &one, a, s.lda, b, s.ldb,
                     &beta, c, s.ldc);
}

inline cublasStatus_t gemm(cublasHandle_t handle, const GemmSizes& s, const double* a,
                           const double* b, double beta, double* c) {
  const double one = 1;
  return cublasDgemm(handle, s.a_operation, CUBLAS_OP_N, s.m, s.n, s.k, &one, a, s.lda, b, s.ldb,
                     &beta, c, s.ldc);
}

inline cublasStatus_t half_gemm(cublasHandle_t handle, const GemmSizes& s, cudaDataType type,
                                const void* a, const void* b, float beta, void* c) {
#if CUDART_VERSION >= 11000
  const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
#else
  const cudaDataType compute = CUDA_R_32F;
#endif
  const float one = 1;
  return cublasGemmEx(handle, s.a_operation, CUBLAS_OP_N, s.m, s.n, s.k, &one, a, type, s.lda, b,
                      type, s.ldb, &beta, c, type, s.ldc, compute, CUBLAS_GEMM_DEFAULT_TENSOR_OP);
}

inline cublasStatus_t gemm(cublasHandle_t handle, const GemmSizes& s, const at::Half* a,
                           const at::Half* b, float beta, at::Half* c) {
  return half_gemm(handle, s, CUDA_R_16F, a, b, beta, c);
}

inline cublasStatus_t gemm(cublasHandle_t handle, const GemmSizes& s, const at::BFloat16* a,
                           const at::BFloat16* b, float beta, at::BFloat16* c) {
  return half_gemm(handle, s, CUDA_R_16BF, a, b, beta, c);
}

// out = a @ b (or b^T), or is added to; on the current stream of the current GPU. Matrices have
// rows of stride(0). Returns false, and does nothing, where cuBLAS cannot be asked.
template <typename C>
bool multiply_by_cublas(const C&, const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                        bool b_transposed, bool add) {
  typedef typename C::Scalar Scalar;
  if (!out.is_cuda() || out.size(0) > INT_MAX || b.stride(0) > INT_MAX || out.stride(0) > INT_MAX ||
      a.stride(0) > INT_MAX || a.size(1) == 0) {
    return false;
  }
  if (out.numel() == 0) return true;
  // cuBLAS counts columns first: out^T = b^T @ a^T.
  const GemmSizes sizes = {b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                           static_cast<int>(out.size(1)),
                           static_cast<int>(out.size(0)),
                           static_cast<int>(a.size(1)),
                           static_cast<int>(b.stride(0)),
                           static_cast<int>(a.stride(0)),
                           static_cast<int>(out.stride(0))};
  const cublasStatus_t status =
      gemm(at::cuda::getCurrentCUDABlasHandle(), sizes, b.data_ptr<Scalar>(), a.data_ptr<Scalar>(),
           add ? 1.0f : 0.0f, out.data_ptr<Scalar>());
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "lltm_decoupled: cuBLAS error ",
              static_cast<int>(status));
  return true;
}

// Whether it may make products of float at the accuracy of TF32: what ATen told it.
inline bool cublas_allows_tf32() {
  cublasMath_t mode;
  return cublasGetMathMode(at::cuda::getCurrentCUDABlasHandle(), &mode) == CUBLAS_STATUS_SUCCESS &&
         mode == CUBLAS_TF32_TENSOR_OP_MATH;
}

#else

inline bool cublas_allows_tf32() { return false; }

template <typename C>
bool multiply_by_cublas(const C&, const at::Tensor&, const at::Tensor&, const at::Tensor&, bool,
                        bool) {
  return false;
}

#endif

}  // namespace lltm_bindings
