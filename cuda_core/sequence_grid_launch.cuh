// Which of the kernels of a table a sequence gets, and its launch.
#ifndef LLTM_SEQUENCE_GRID_LAUNCH_CUH_
#define LLTM_SEQUENCE_GRID_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "device.cuh"
#include "sequence_grid_kernel.cuh"
#include "sequence_paths.cuh"

namespace lltm {
namespace {

// Fewer steps do not pay for reading the weights in.
const int64_t kFewestSteps = 4;
// About a second: a step takes microseconds.
const long long kPatience = 2000000000LL;
const long long kLongestPatience = 1LL << 62;

// For one type, pass and accuracy, by preference; behind the last kernel is an empty one. Made anew
// where it is needed: nvcc would export a static table of a template.
struct GridTable {
  GridKernel kernels[28];
};

struct GridChoice {
  GridKernel kernel;  // its `kernel` is null: none fits
  GridLaunch launch;  // without its pointers
  int64_t ring_bytes;
};

// The first that the state fits and that is good for as many turns as the rows take.
inline GridChoice choose(const GridTable& table, const SequenceShape& s) {
  GridChoice choice = {};
  if (is_empty(s) || !has_hopper_kernels()) return choice;
  if (!device_attribute(cudaDevAttrCooperativeLaunch)) return choice;
  // Pairs of units are read at once.
  if (s.state_size % 2 != 0) return choice;
  const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
  const size_t memory =
      static_cast<size_t>(device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  for (const GridKernel& kernel : table.kernels) {
    if (!kernel.kernel) break;
    if (s.state_size > kernel.padded) continue;
    const int slices = kernel.padded / kernel.units;
    const int64_t most = processors * kernel.side_by_side / slices;
    if (most == 0) continue;
    const int64_t groups = (s.batch_size + kernel.rows - 1) / kernel.rows;
    if (groups > most * kernel.most_turns) continue;
    const int turns = static_cast<int>((groups + most - 1) / most);
    const int blocks = slices * static_cast<int>((groups + turns - 1) / turns);
    if (kernel.memory_bytes(turns) > memory) continue;
    if (!GridKernelLaunch(kernel, blocks, turns).has_room()) continue;
    choice.kernel = kernel;
    choice.launch.slices = slices;
    choice.launch.turns = turns;
    choice.launch.clocks_to_send = static_cast<unsigned>(kernel.clocks_to_send);
    choice.launch.blocks = blocks;
    const int64_t rows = static_cast<int64_t>(blocks / slices) * turns * kernel.rows;
    choice.launch.slot_bytes = static_cast<uint32_t>(rows * kernel.padded * kernel.bytes);
    const int slots =
        kernel.has_laps ? kSlotsOfLaps : slots_of_ring(s.steps, choice.launch.slot_bytes);
    choice.launch.slots = slots;
    choice.launch.fence_every = fence_every(s.steps, slots);
    choice.ring_bytes = (s.steps < slots ? s.steps : slots) * int64_t{choice.launch.slot_bytes};
    break;
  }
  return choice;
}

template <typename Arguments>
GridPlan plan_with(const GridTable& table, const Arguments& a) {
  const GridChoice choice = choose(table, a.shape);
  if (!choice.kernel.kernel || a.shape.steps < kFewestSteps) return {0, 0};
  return {choice.launch.blocks, choice.ring_bytes};
}

template <typename Arguments>
int32_t launch_with(const GridTable& table, const Arguments& a,
                    const lltm_sequence_options& options, cudaStream_t stream) {
  GridChoice choice = choose(table, a.shape);
  if (!choice.kernel.kernel) return -3;
  GridLaunch& launch = choice.launch;
  launch.ring = static_cast<char*>(options.workspace);
  launch.failure = options.failure;
  launch.steps_before = static_cast<int>(options.steps_before % (2 * kTurnSteps));
  launch.patience = options.patience > 0 ? options.patience : kPatience;
  // It is added to a clock.
  if (launch.patience > kLongestPatience) launch.patience = kLongestPatience;
  const int32_t status =
      status_of(cudaMemsetAsync(launch.ring, 0xff, static_cast<size_t>(choice.ring_bytes), stream));
  if (status) return status;
  Arguments arguments = a;
  void* parameters[] = {&arguments, &launch};
  return GridKernelLaunch(choice.kernel, launch.blocks, launch.turns).start(parameters, stream);
}

}  // namespace
}  // namespace lltm

// The functions of sequence_paths.cuh for one type, by forward_table(tf32) and
// backward_table(tf32).
#define LLTM_DEFINE_GRID(type)                                                               \
  namespace lltm {                                                                           \
  template <>                                                                                \
  GridPlan plan_grid(const SequenceForward<type>& a, bool tf32) {                            \
    return plan_with(forward_table(tf32), a);                                                \
  }                                                                                          \
  template <>                                                                                \
  GridPlan plan_grid(const SequenceBackward<type>& a, bool tf32) {                           \
    return plan_with(backward_table(tf32), a);                                               \
  }                                                                                          \
  template <>                                                                                \
  int32_t launch_grid(const SequenceForward<type>& a, const lltm_sequence_options& options,  \
                      cudaStream_t stream) {                                                 \
    return launch_with(forward_table(options.tf32 != 0), a, options, stream);                \
  }                                                                                          \
  template <>                                                                                \
  int32_t launch_grid(const SequenceBackward<type>& a, const lltm_sequence_options& options, \
                      cudaStream_t stream) {                                                 \
    return launch_with(backward_table(options.tf32 != 0), a, options, stream);               \
  }                                                                                          \
  }  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_LAUNCH_CUH_
