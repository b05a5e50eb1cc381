// The lines of a product's factors, rows of a and columns of b: how large their values are, and how
// they are scaled to fit the exponents of a half.
#ifndef LLTM_SPLIT_LINES_CUH_
#define LLTM_SPLIT_LINES_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

const int kLargestThreads = 256;
const int kFour = 4;  // terms, or lines, that a thread of a product brings at once

// a or b, and of each of its lines the bits of the largest magnitude. One of the steps is 1.
struct SplitFactor {
  const float* data;
  int64_t line_step, term_step;
  int64_t lines;
  const uint32_t* largest;
};

// What a line is multiplied by, a power of two, so that its largest magnitude is 2^14 or more and
// less than 2^15, and what takes that back. Both are normal numbers: a line below 2^-112 keeps
// fewer bits. One with an infinity or a NaN is not scaled.
__device__ __forceinline__ uint32_t scale_exponent(uint32_t largest) {
  const uint32_t exponent = largest >> 23;
  return exponent == 255 ? 127 : min(2 * 127 + 14 - exponent, 253u);
}
__device__ __forceinline__ float scale_of(uint32_t largest) {
  return __uint_as_float(scale_exponent(largest) << 23);
}
__device__ __forceinline__ float back_of(uint32_t largest) {
  return __uint_as_float((254 - scale_exponent(largest)) << 23);
}

// Nothing in between is too large or too small that is not so in the end: one factor below 1 and
// one above make a normal number.
__device__ __forceinline__ float scaled_back(float sum, float x, float y) {
  return (x < 1.0f) != (y < 1.0f) ? sum * (x * y) : sum * x * y;
}

__device__ __forceinline__ float back_of_line(const SplitFactor& factor, int64_t line) {
  return line < factor.lines ? back_of(__ldg(factor.largest + line)) : 0.0f;
}

// The bits of the largest magnitude of each line; 0x7f800000 and more where not all are finite. A
// warp reads what lies side by side: terms of a line if kAlong, else lines.
template <bool kAlong>
__global__ void __launch_bounds__(kLargestThreads)
    largest_kernel(const SplitFactor factor, int64_t terms, int64_t terms_of_block,
                   uint32_t* largest) {
  const int warps = kLargestThreads / 32;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  __shared__ uint32_t of_lines[32];
  if (!kAlong) {
    if (warp == 0) of_lines[lane] = 0;
    __syncthreads();
  }
  const int64_t line =
      kAlong ? static_cast<int64_t>(blockIdx.x) * warps + warp : blockIdx.x * 32ll + lane;
  const int64_t begin = blockIdx.y * terms_of_block;
  const int64_t end = min(begin + terms_of_block, terms);
  uint32_t most = 0;
  if (line < factor.lines) {
    const float* const values = factor.data + line * factor.line_step;
#pragma unroll 8
    for (int64_t k = begin + (kAlong ? lane : warp); k < end; k += kAlong ? 32 : warps) {
      most = max(most, __float_as_uint(values[k * factor.term_step]) & 0x7fffffffu);
    }
  }
  if (kAlong) {
#pragma unroll
    for (int i = 16; i > 0; i /= 2) most = max(most, __shfl_xor_sync(~0u, most, i));
    if (lane == 0 && line < factor.lines) atomicMax(largest + line, most);
  } else {
    atomicMax(of_lines + lane, most);
    __syncthreads();
    if (warp == 0 && line < factor.lines) atomicMax(largest + line, of_lines[lane]);
  }
}

inline int64_t rounded_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int32_t find_largest(const SplitFactor& factor, int64_t terms, bool along, uint32_t* largest,
                     cudaStream_t stream) {
  const int64_t lines_of_block = along ? kLargestThreads / 32 : 32;
  const int64_t blocks = rounded_up(factor.lines, lines_of_block);
  const int64_t parts = along ? 1 : rounded_up(4096, blocks);
  const int64_t terms_of_block = rounded_up(terms, parts);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
  if (along) {
    largest_kernel<true>
        <<<grid, kLargestThreads, 0, stream>>>(factor, terms, terms_of_block, largest);
  } else {
    largest_kernel<false>
        <<<grid, kLargestThreads, 0, stream>>>(factor, terms, terms_of_block, largest);
  }
  return static_cast<int32_t>(cudaGetLastError());
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SPLIT_LINES_CUH_
