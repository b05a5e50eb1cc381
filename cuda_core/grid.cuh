// Flat grids: one thread a unit, 64-bit indices, what is left is strided over.
#ifndef LLTM_GRID_CUH_
#define LLTM_GRID_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

const int kThreads = 256;
// Enough to fill any GPU many times over.
const int64_t kMostBlocks = 1 << 20;

// 64-bit division costs a hundred instructions, and nearly every size fits in 32 bits.
__device__ __forceinline__ int64_t divide(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

__device__ __forceinline__ int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64_t index_stride() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

inline unsigned grid_of(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_GRID_CUH_
