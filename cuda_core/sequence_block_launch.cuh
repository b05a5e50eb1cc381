// How a sequence in one block is launched: which kernel a size takes. Each type is a file.
#ifndef LLTM_SEQUENCE_BLOCK_LAUNCH_CUH_
#define LLTM_SEQUENCE_BLOCK_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "device.cuh"
#include "sequence_block_backward.cuh"
#include "sequence_block_fma.cuh"
#include "sequence_block_forward.cuh"
#include "sequence_block_tensor.cuh"
#include "sequence_paths.cuh"

namespace lltm {
namespace {

template <typename Product>
unsigned blocks_of(const SequenceShape& shape) {
  return static_cast<unsigned>((shape.batch_size + Product::kRows - 1) / Product::kRows);
}

template <typename S>
struct ForwardPass {
  typedef SequenceForward<S> Arguments;
  template <int kWidth, int kRows>
  using Fma = FmaForward<S, kWidth, kRows>;
  template <int kWidth>
  using Tensor = TensorForward<S, kWidth>;

  template <typename Product, bool kPacked>
  static void launch(const Arguments& a, cudaStream_t stream) {
    const unsigned blocks = blocks_of<Product>(a.shape);
    forward_kernel<Product, S, kPacked><<<blocks, Product::kThreads, 0, stream>>>(a);
  }
};

template <typename S>
struct BackwardPass {
  typedef SequenceBackward<S> Arguments;
  template <int kWidth, int kRows>
  using Fma = FmaBackward<S, kWidth, kRows>;
  template <int kWidth>
  using Tensor = TensorBackward<S, kWidth>;

  template <typename Product, bool kPacked>
  static void launch(const Arguments& a, cudaStream_t stream) {
    const unsigned blocks = blocks_of<Product>(a.shape);
    backward_kernel<Product, S, kPacked><<<blocks, Product::kThreads, 0, stream>>>(a);
  }
};

// Half types on a Hopper GPU by tensor cores; returns whether it is one.
template <typename Pass, int kWidth, bool kIsHalf>
struct ByTensorCores {
  static bool launch(const typename Pass::Arguments&, cudaStream_t) { return false; }
};
template <typename Pass, int kWidth>
struct ByTensorCores<Pass, kWidth, true> {
  static bool launch(const typename Pass::Arguments& a, cudaStream_t stream) {
    if (!has_hopper_kernels()) return false;
    typedef typename Pass::template Tensor<kWidth> Product;
    if (a.shape.first_rows) {
      Pass::template launch<Product, true>(a, stream);
    } else {
      Pass::template launch<Product, false>(a, stream);
    }
    return true;
  }
};

template <typename Pass, int kWidth, typename S>
void launch_width(const typename Pass::Arguments& a, cudaStream_t stream) {
  typedef typename Pass::template Fma<kWidth, 1> OneRow;
  typedef typename Pass::template Fma<kWidth, 2> TwoRows;
  if (ByTensorCores<Pass, kWidth, sizeof(S) == 2>::launch(a, stream)) return;
  if (a.shape.first_rows) {
    Pass::template launch<OneRow, true>(a, stream);
  } else if (a.shape.batch_size <= device_attribute(cudaDevAttrMultiProcessorCount)) {
    Pass::template launch<OneRow, false>(a, stream);  // there are processors for it
  } else {
    Pass::template launch<TwoRows, false>(a, stream);
  }
}

template <typename Pass, typename S>
int32_t launch_pass(const typename Pass::Arguments& a, cudaStream_t stream) {
  if (a.shape.state_size <= 32) {
    launch_width<Pass, 32, S>(a, stream);
  } else if (a.shape.state_size <= 64) {
    launch_width<Pass, 64, S>(a, stream);
  } else if (a.shape.state_size <= 96) {
    launch_width<Pass, 96, S>(a, stream);
  } else {
    launch_width<Pass, 128, S>(a, stream);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

}  // namespace

template <typename S>
int32_t launch_block(const SequenceForward<S>& a, cudaStream_t stream) {
  return launch_pass<ForwardPass<S>, S>(a, stream);
}

template <typename S>
int32_t launch_block(const SequenceBackward<S>& a, cudaStream_t stream) {
  return launch_pass<BackwardPass<S>, S>(a, stream);
}

}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_LAUNCH_CUH_
