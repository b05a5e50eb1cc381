// Which sequences fit into one block each; sequence_block_*.cu have the kernels.
#include <cuda_runtime.h>

#include "lltm.h"
#include "sequence_paths.cuh"

namespace lltm {
namespace {

// Rows beyond which the blocks take turns too often.
const int64_t kMostRows = 2048;
// The widest kernel.
const int64_t kWidest = 128;

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

template <>
int32_t launch_block(const SequenceForward<double>&, cudaStream_t) {
  return -3;
}
template <>
int32_t launch_block(const SequenceBackward<double>&, cudaStream_t) {
  return -3;
}

}  // namespace lltm
