// The C ABI of sequences in one launch, and their choice of kernel.
#include <cuda_runtime.h>

#include "lltm.h"
#include "sequence_block_backward.cuh"
#include "sequence_block_forward.cuh"

namespace lltm {
namespace {

// Rows beyond which the blocks take turns too often.
const int64_t kMostRows = 2048;

// A thread's registers hold no half of the weights as doubles.
template <typename S>
bool fits(int64_t batch_size, int64_t state_size) {
  return sizeof(ComputeType<S>) == sizeof(float) && batch_size >= 0 && batch_size <= kMostRows &&
         state_size >= 0 && state_size <= kWidest;
}

// One row a block while there are processors for it.
bool one_row_each(int64_t batch_size) {
  int device = 0;
  int processors = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return true;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return batch_size <= processors;
}

template <int kWidth, int kRows, typename S>
void launch_kernel(const SequenceForward<S>& a, unsigned blocks, cudaStream_t stream) {
  forward_kernel<S, kWidth, kRows><<<blocks, 2 * kWidth, 0, stream>>>(a);
}

template <int kWidth, int kRows, typename S>
void launch_kernel(const SequenceBackward<S>& a, unsigned blocks, cudaStream_t stream) {
  backward_kernel<S, kWidth, kRows><<<blocks, 2 * kWidth, 0, stream>>>(a);
}

template <int kRows>
void launch_rows(const SequenceForward<double>&, cudaStream_t) {}

template <int kRows>
void launch_rows(const SequenceBackward<double>&, cudaStream_t) {}

template <int kRows, typename Arguments>
void launch_rows(const Arguments& a, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((a.shape.batch_size + kRows - 1) / kRows);
  if (a.shape.state_size <= 64) return launch_kernel<64, kRows>(a, blocks, stream);
  launch_kernel<128, kRows>(a, blocks, stream);
}

}  // namespace

template <template <typename> class Arguments, typename S>
int32_t launch(const Arguments<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a.shape)) return status;
  if (!fits<S>(a.shape.batch_size, 0)) return -2;
  if (!fits<S>(0, a.shape.state_size)) return -3;
  if (one_row_each(a.shape.batch_size)) {
    launch_rows<1>(a, stream);
  } else {
    launch_rows<2>(a, stream);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

template int32_t launch(const SequenceForward<float>&, cudaStream_t);
template int32_t launch(const SequenceForward<double>&, cudaStream_t);
template int32_t launch(const SequenceForward<lltm_half>&, cudaStream_t);
template int32_t launch(const SequenceForward<lltm_bfloat16>&, cudaStream_t);
template int32_t launch(const SequenceBackward<float>&, cudaStream_t);
template int32_t launch(const SequenceBackward<double>&, cudaStream_t);
template int32_t launch(const SequenceBackward<lltm_half>&, cudaStream_t);
template int32_t launch(const SequenceBackward<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_SEQUENCE(name, type, compute)                                                \
  int32_t lltm_sequence_fits_cuda_##name(int64_t batch_size, int64_t state_size) noexcept {      \
    return lltm::fits<type>(batch_size, state_size) ? 1 : 0;                                     \
  }                                                                                              \
  int32_t lltm_sequence_forward_cuda_##name(                                                     \
      int64_t steps, int64_t batch_size, int64_t state_size, const type* weights,                \
      int64_t weights_stride, int32_t reverse, type* gates, const type* h0, compute* cell,       \
      type* output, type* new_cell, CUstream_st* stream) noexcept {                              \
    const lltm::SequenceForward<type> arguments = {                                              \
        {steps, batch_size, state_size, weights_stride, reverse != 0},                           \
        weights,                                                                                 \
        gates,                                                                                   \
        h0,                                                                                      \
        cell,                                                                                    \
        output,                                                                                  \
        new_cell};                                                                               \
    return lltm::launch(arguments, stream);                                                      \
  }                                                                                              \
  int32_t lltm_sequence_backward_cuda_##name(                                                    \
      int64_t steps, int64_t batch_size, int64_t state_size, const type* weights,                \
      int64_t weights_stride, int32_t reverse, const type* grad_output, const type* activations, \
      const type* new_cell, const type* d_h_n, compute* d_cell, type* d_h0, type* d_gates,       \
      CUstream_st* stream) noexcept {                                                            \
    const lltm::SequenceBackward<type> arguments = {                                             \
        {steps, batch_size, state_size, weights_stride, reverse != 0},                           \
        weights,                                                                                 \
        grad_output,                                                                             \
        activations,                                                                             \
        new_cell,                                                                                \
        d_h_n,                                                                                   \
        d_cell,                                                                                  \
        d_h0,                                                                                    \
        d_gates};                                                                                \
    return lltm::launch(arguments, stream);                                                      \
  }

LLTM_DEFINE_SEQUENCE(float, float, float)
LLTM_DEFINE_SEQUENCE(double, double, double)
LLTM_DEFINE_SEQUENCE(half, lltm_half, float)
LLTM_DEFINE_SEQUENCE(bfloat16, lltm_bfloat16, float)
