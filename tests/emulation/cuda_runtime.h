// What the core's kernels use of CUDA, for a host compiler: tests/emulated_gpu.py compiles them
// against this, and emulation.cpp runs them. A block's threads take turns in one thread of the
// host: each runs until it has to wait for others. So results are the same in every run, and a
// missing barrier shows as a value that is not there yet, or not there any more.
#ifndef LLTM_EMULATED_CUDA_RUNTIME_H_
#define LLTM_EMULATED_CUDA_RUNTIME_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <initializer_list>

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  return a < b ? b : a;
}
inline int __ffsll(unsigned long long bits) { return __builtin_ffsll(bits); }
template <typename T>
T __ldg(const T* p) {
  return *p;
}
inline void atomicMax(uint32_t* p, uint32_t value) { *p = max(*p, value); }

typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
enum {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrCooperativeLaunch,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetLastError();
// By their shared memory alone.
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                 size_t shared) {
  *blocks = (228 << 10) / (static_cast<int>(shared) + 1024);
  return cudaSuccess;
}
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
// For good, where it is less than before: another thread may always have been there last.
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int shared);
inline cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t) {
  memset(p, value, bytes);
  return cudaSuccess;
}

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1) : x(x), y(y) {}
  unsigned x, y;
};

namespace emulated {

// All blocks, one after the other. `kernel` calls the kernel with its arguments.
void run_blocks(dim3 blocks, unsigned threads, size_t shared, void (*call)(const void*),
                const void* kernel);
template <typename Kernel>
void launch(dim3 blocks, unsigned threads, size_t shared, const Kernel& kernel) {
  const auto call = [](const void* k) { (*static_cast<const Kernel*>(k))(); };
  run_blocks(blocks, threads, shared, call, &kernel);
}

// Fills an array in shared memory with NaN where the first thread of a block comes by: what a block
// finds there is nothing that it may use.
void enter_shared(void* array, size_t size, int byte = 0xff);
// That of the size that the launch named, beside a page that nobody may touch. It is filled with
// large numbers: a kernel may know what to do with NaN.
void* dynamic_shared();

void wait_for_block();
void wait_for_warp();
// Up to 24 bytes for all lanes of the warp, each of which calls it and says the same `what`; and
// what another thread of it gave in that turn.
unsigned give_to_warp(const void* from, size_t size, int what);
const unsigned char* given_by(unsigned thread, unsigned turn);
// `from` of the lane at that distance in the same warp; each calls it.
void exchange(const void* from, void* to, size_t size, int distance);

// The product of a tensor core, m16n8k16 of a type of 16 bits or m16n8k8 of TF32: a's four words
// and b's two. A step's sum is truncated. Each lane of the warp calls it.
void mma(const char* shape, const char* type, float& c0, float& c1, float& c2, float& c3,
         std::initializer_list<uint32_t> factors);
// Two floats rounded to a type of 16 bits.
uint32_t rounded_pair(const char* type, float high, float low);

// ex2.approx.ftz and rcp.approx.ftz: without subnormal numbers. Theirs are within two units in the
// last place of these.
inline float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x; }
inline float exp2(float x) { return flushed(exp2f(flushed(x))); }
inline float reciprocal(float x) { return flushed(1.0f / flushed(x)); }

// A vector load or store: of an address that is not a multiple of its size the launch fails.
void check_alignment(const void* p, size_t size);
template <typename... Words>
void load_words(const void* from, Words&... words) {
  check_alignment(from, 4 * sizeof...(words));
  const uint32_t* next = static_cast<const uint32_t*>(from);
  for (void* const word : {static_cast<void*>(&words)...}) memcpy(word, next++, 4);
}
template <typename... Words>
void store_words(void* to, Words... words) {
  check_alignment(to, 4 * sizeof...(words));
  uint32_t* next = static_cast<uint32_t*>(to);
  for (const uint32_t word : {words...}) memcpy(next++, &word, 4);
}

}  // namespace emulated

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

inline void __syncthreads() { emulated::wait_for_block(); }
inline void __syncwarp() { emulated::wait_for_warp(); }
template <typename T>
T __shfl_xor_sync(uint32_t, T value, int distance) {
  T other;
  emulated::exchange(&value, &other, sizeof(T), distance);
  return other;
}

#include "cooperative.h"

#endif  // LLTM_EMULATED_CUDA_RUNTIME_H_
