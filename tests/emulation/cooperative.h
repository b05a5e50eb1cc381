// What kernels use besides, whose blocks run together and exchange values; see cuda_runtime.h.
#ifndef LLTM_EMULATED_COOPERATIVE_H_
#define LLTM_EMULATED_COOPERATIVE_H_

#include <time.h>

#include <type_traits>
#include <utility>

#define __align__(bytes) alignas(bytes)

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

inline long long __double_as_longlong(double value) {
  long long bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline int __double2loint(double value) { return static_cast<int>(__double_as_longlong(value)); }
inline int __double2hiint(double value) {
  return static_cast<int>(__double_as_longlong(value) >> 32);
}
inline double __hiloint2double(int high, int low) {
  const long long bits =
      static_cast<long long>(high) << 32 | static_cast<long long>(static_cast<uint32_t>(low));
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

namespace emulated {

// Of the lanes of a warp, each of which calls it.
bool any_of_warp(bool value);
template <typename T>
T of_lane(T value, int lane) {
  const unsigned turn = give_to_warp(&value, sizeof(value), -2);
  T other;
  memcpy(&other, given_by(threadIdx.x / 32 * 32 + lane, turn), sizeof(other));
  return other;
}

// An address in the block's shared memory. What is copied there comes when it is waited for.
size_t shared_address(const void* p);
void copy_async(uint32_t to, const void* from, int size);
void end_copies();
void wait_for_copies(int left);

// It goes on by itself, a little each time; the long one lets other blocks run.
unsigned ticks();
long long ticks_of_turn();

// Whether a launch of it may ask for so much.
bool may_have(const void* kernel, size_t shared);
// All blocks at once.
void run_together(dim3 blocks, unsigned threads, size_t shared, void (*call)(const void*),
                  const void* kernel);

// A kernel as a function of its parameters' addresses.
template <auto kernel>
struct Entry;
template <typename... Parameters, void (*kernel)(Parameters...)>
struct Entry<kernel> {
  template <size_t... i>
  static void call(void* const* parameters, std::index_sequence<i...>) {
    kernel(*static_cast<const std::remove_const_t<Parameters>*>(parameters[i])...);
  }
  static void call(const void* parameters) {
    call(static_cast<void* const*>(parameters), std::index_sequence_for<Parameters...>());
  }
};
template <auto kernel>
const void* entry() {
  void (*const call)(const void*) = &Entry<kernel>::call;
  return reinterpret_cast<const void*>(call);
}

}  // namespace emulated

inline bool __any_sync(uint32_t, bool value) { return emulated::any_of_warp(value); }
inline bool __all_sync(uint32_t, bool value) { return !emulated::any_of_warp(!value); }
template <typename T>
T __shfl_sync(uint32_t, T value, int lane) {
  return emulated::of_lane(value, lane);
}
inline size_t __cvta_generic_to_shared(const void* p) { return emulated::shared_address(p); }
// A macro, for the C library has a clock of its own.
#define clock() emulated::ticks()
inline long long clock64() { return emulated::ticks_of_turn(); }
inline void __threadfence_system() {}

inline cudaError_t cudaLaunchCooperativeKernel(const void* entry, dim3 blocks, dim3 threads,
                                               void** parameters, size_t shared, cudaStream_t) {
  if (!emulated::may_have(entry, shared)) return cudaErrorInvalidValue;
  emulated::run_together(blocks, threads.x, shared,
                         reinterpret_cast<void (*)(const void*)>(const_cast<void*>(entry)),
                         parameters);
  return cudaGetLastError();
}

#endif  // LLTM_EMULATED_COOPERATIVE_H_
