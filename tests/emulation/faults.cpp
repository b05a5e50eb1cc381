// Kernels with faults, each of which the emulation has to see: the test of itself.
#include "cuda_runtime.h"

namespace {

const unsigned kThreads = 64;

enum Fault {
  kNone,
  kNoBarrier,
  kBarrierOfSome,
  kShuffleOfSome,
  kOtherShuffle,
  kAddressBeyond,
  kIndexBeyond,
  kMisaligned
};

// Of `array`, which has a value for each thread: that of the thread behind, by way of shared
// memory.
void rotate_kernel(Fault fault, float* array) {
  static float shared[kThreads];
  emulated::enter_shared(&shared, sizeof(shared));
  const unsigned i = threadIdx.x;
  shared[i] = array[i];
  if (fault != kNoBarrier && (fault != kBarrierOfSome || i < 40)) __syncthreads();
  if (fault != kShuffleOfSome || i != 3) {
    __shfl_xor_sync(0xffffffffu, 0.0f, fault == kOtherShuffle && i == 3 ? 2 : 1);
  }
  array[i] = shared[(i + 1) % (fault == kIndexBeyond ? kThreads + 1 : kThreads)];
  if (fault == kAddressBeyond && i == 5) array[kThreads] = 0.0f;
  uint32_t a, b, c, d;
  if (fault == kMisaligned) emulated::load_words(array + 1, a, b, c, d);
}

}  // namespace

extern "C" int32_t emulated_fault(Fault fault, float* array) {
  emulated::launch(1, kThreads, 0, [&] { rotate_kernel(fault, array); });
  return cudaGetLastError();
}
