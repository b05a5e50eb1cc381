// The two kinds of kernels that take all steps of a sequence in one launch.
#ifndef LLTM_SEQUENCE_PATHS_CUH_
#define LLTM_SEQUENCE_PATHS_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "lltm_sequence.h"

namespace lltm {

// One block has a row or two and all weights: sequence_block*.cu.
template <typename S>
bool fits_block(int64_t batch_size, int64_t state_size);
template <typename S>
int32_t launch_block(const SequenceForward<S>& a, cudaStream_t stream);
template <typename S>
int32_t launch_block(const SequenceBackward<S>& a, cudaStream_t stream);

// All blocks together: sequence_grid_*.cu. Without blocks: it does not fit.
struct GridPlan {
  int32_t blocks;
  int64_t workspace;
};
template <template <typename> class Arguments, typename S>
GridPlan plan_grid(const Arguments<S>& a, bool tf32);
template <template <typename> class Arguments, typename S>
int32_t launch_grid(const Arguments<S>& a, const lltm_sequence_options& options,
                    cudaStream_t stream);

}  // namespace lltm

#endif  // LLTM_SEQUENCE_PATHS_CUH_
