// In place of the sequence_grid_*.cu that the emulated GPU does not have.
#include "sequence_paths.cuh"

namespace lltm {

template <template <typename> class Arguments, typename S>
GridPlan plan_grid(const Arguments<S>&, bool) {
  return {0, 0};
}
template <template <typename> class Arguments, typename S>
int32_t launch_grid(const Arguments<S>&, const lltm_sequence_options&, cudaStream_t) {
  return cudaErrorLaunchFailure;
}

#define LLTM_INSTANTIATE(Arguments, S)                    \
  template GridPlan plan_grid(const Arguments<S>&, bool); \
  template int32_t launch_grid(const Arguments<S>&, const lltm_sequence_options&, cudaStream_t);

LLTM_INSTANTIATE(SequenceForward, double)
LLTM_INSTANTIATE(SequenceForward, lltm_bfloat16)
LLTM_INSTANTIATE(SequenceBackward, double)
LLTM_INSTANTIATE(SequenceBackward, lltm_bfloat16)

}  // namespace lltm
