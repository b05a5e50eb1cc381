// The kernels of a sequence in one block, float16.
#include "sequence_block_launch.cuh"

namespace lltm {

template int32_t launch_block(const SequenceForward<lltm_half>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<lltm_half>&, cudaStream_t);

}  // namespace lltm
