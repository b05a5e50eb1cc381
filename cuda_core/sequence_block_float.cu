// The kernels of a sequence in one block, float32.
#include "sequence_block_launch.cuh"

namespace lltm {

template int32_t launch_block(const SequenceForward<float>&, cudaStream_t);
template int32_t launch_block(const SequenceBackward<float>&, cudaStream_t);

}  // namespace lltm
