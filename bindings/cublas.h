// Matrix products on a GPU by cuBLAS itself, on ATen's handle: a call takes a third of the time of
// at::addmm.
#pragma once

#include <ATen/Context.h>

#include <algorithm>
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

// Rows of a tensor, one after another.
template <typename Scalar>
struct Matrix {
  Matrix(const at::Tensor& tensor, int64_t first, int64_t rows)
      : data(tensor.data_ptr<Scalar>() + first * tensor.stride(0)),
        rows(rows),
        columns(tensor.size(1)),
        // The stride of a single row may be any number.
        stride(rows > 1 ? tensor.stride(0) : (std::max)(columns, int64_t(1))) {}
  bool fits() const { return rows <= INT_MAX && columns <= INT_MAX && stride <= INT_MAX; }

  Scalar* data;
  int64_t rows, columns, stride;
};

// On the current stream of the current GPU. To ask for the handle takes as long as a product, so
// one object serves a few steps; in between ATen may use the handle, but on the same stream.
class Cublas {
 public:
  explicit Cublas(bool is_cuda)
      : handle_(is_cuda ? at::cuda::getCurrentCUDABlasHandle() : nullptr) {}

  // out = a @ b (or b^T), or is added to. Returns false, and does nothing, where cuBLAS cannot be
  // asked.
  template <typename Scalar>
  bool multiply(const Matrix<Scalar>& out, const Matrix<Scalar>& a, const Matrix<Scalar>& b,
                bool b_transposed, bool add) const {
    if (!handle_ || !out.fits() || !a.fits() || !b.fits() || a.columns == 0) return false;
    if (out.rows == 0 || out.columns == 0) return true;
    // cuBLAS counts columns first: out^T = b^T @ a^T.
    const GemmSizes sizes = {b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                             static_cast<int>(out.columns),
                             static_cast<int>(out.rows),
                             static_cast<int>(a.columns),
                             static_cast<int>(b.stride),
                             static_cast<int>(a.stride),
                             static_cast<int>(out.stride)};
    const cublasStatus_t status = gemm(handle_, sizes, b.data, a.data, add ? 1.0f : 0.0f, out.data);
    TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "lltm_decoupled: cuBLAS error ",
                std::to_string(static_cast<int>(status)));
    return true;
  }

 private:
  cublasHandle_t handle_;
};

// Whether it may make products of float at the accuracy of TF32: what ATen told it.
inline bool cublas_allows_tf32() {
  cublasMath_t mode;
  return cublasGetMathMode(at::cuda::getCurrentCUDABlasHandle(), &mode) == CUBLAS_STATUS_SUCCESS &&
         mode == CUBLAS_TF32_TENSOR_OP_MATH;
}

#else

inline bool cublas_allows_tf32() { return false; }

template <typename Scalar>
struct Matrix {
  Matrix(const at::Tensor&, int64_t, int64_t) {}
};

class Cublas {
 public:
  explicit Cublas(bool) {}
  template <typename Scalar>
  bool multiply(const Matrix<Scalar>&, const Matrix<Scalar>&, const Matrix<Scalar>&, bool,
                bool) const {
    return false;
  }
};

#endif

// Whether products of `like` may have the accuracy of TF32, as torch's own have it. The old
// question raises where the new switch was set.
inline bool allows_tf32(const at::Tensor& like) {
  if (like.scalar_type() != at::kFloat) return false;
  try {
    return at::globalContext().allowTF32CuBLAS();
  } catch (const c10::Error&) {
    return cublas_allows_tf32();
  }
}

}  // namespace lltm_bindings
