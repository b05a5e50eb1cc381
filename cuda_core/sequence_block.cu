// Sequences in one block each.
#include <cuda_runtime.h>

#include "lltm.h"
#include "sequence_block_backward.cuh"
#include "sequence_block_forward.cuh"
#include "sequence_paths.cuh"

namespace lltm {
namespace {

// Rows beyond which the blocks take turns too often.
const int64_t kMostRows = 2048;

// One row a block while there are processors for it.
bool one_row_each(int64_t batch_size) {
  int device = 0;
  int processors = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return true;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return batch_size <= processors;
}

template <int kWidth, int kRows, bool kPacked, typename S>
void launch_kernel(const SequenceForward<S>& a, unsigned blocks, cudaStream_t stream) {
  forward_kernel<S, kWidth, kRows, kPacked><<<blocks, 2 * kWidth, 0, stream>>>(a);
}

template <int kWidth, int kRows, bool kPacked, typename S>
void launch_kernel(const SequenceBackward<S>& a, unsigned blocks, cudaStream_t stream) {
  backward_kernel<S, kWidth, kRows, kPacked><<<blocks, 2 * kWidth, 0, stream>>>(a);
}

template <int kRows, bool kPacked>
void launch_rows(const SequenceForward<double>&, cudaStream_t) {}

template <int kRows, bool kPacked>
void launch_rows(const SequenceBackward<double>&, cudaStream_t) {}

template <int kRows, bool kPacked, typename Arguments>
void launch_rows(const Arguments& a, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((a.shape.batch_size + kRows - 1) / kRows);
  if (a.shape.state_size <= 64) return launch_kernel<64, kRows, kPacked>(a, blocks, stream);
  launch_kernel<128, kRows, kPacked>(a, blocks, stream);
}

}  // namespace

// A thread's registers hold no half of the weights as doubles.
template <typename S>
bool fits_block(int64_t batch_size, int64_t state_size) {
  return sizeof(ComputeType<S>) == sizeof(float) && batch_size >= 0 && batch_size <= kMostRows &&
         state_size >= 0 && state_size <= kWidest;
}

template bool fits_block<float>(int64_t, int64_t);
template bool fits_block<double>(int64_t, int64_t);
template bool fits_block<lltm_half>(int64_t, int64_t);
template bool fits_block<lltm_bfloat16>(int64_t, int64_t);

template <template <typename> class Arguments, typename S>
int32_t launch_block(const Arguments<S>& a, cudaStream_t stream) {
  if (a.shape.first_rows) {
    launch_rows<1, true>(a, stream);
  } else if (one_row_each(a.shape.batch_size)) {
    launch_rows<1, false>(a, stream);
  } else {
    launch_rows<2, false>(a, stream);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

template int32_t launch_block(const SequenceForward<float>&, cudaStream_t);
template int32_t launch_block(const SequenceForward<double>&, cudaStream_t);
template int32_t launch_block(const SequenceForward<lltm_half>&, cudaStream_t);
template int32_t launch_block(const SequenceForward<lltm_bfloat16>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<float>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<double>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<lltm_half>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm
