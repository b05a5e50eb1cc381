// The kernels of a sequence in one block, bfloat16.
#include "sequence_block_launch.cuh"

namespace lltm {

template int32_t launch_block(const SequenceForward<lltm_bfloat16>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm
