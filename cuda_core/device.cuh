// What the current GPU is, and what this binary has for it.
#ifndef LLTM_DEVICE_CUH_
#define LLTM_DEVICE_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

// Of a call, as the C ABI has it. The next one who asks for the last error must not get it again.
inline int32_t status_of(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return static_cast<int32_t>(error);
}

// 0 where it cannot be asked.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  if (status_of(cudaGetDevice(&device))) return 0;
  return status_of(cudaDeviceGetAttribute(&value, attribute, device)) ? 0 : value;
}

// The architecture of the current GPU, 900 say, if this binary has machine code for just that, else
// 0. Others it runs by PTX, maybe that of a far older one.
inline int own_architecture() {
#ifdef __CUDA_ARCH_LIST__
  const int current = 100 * device_attribute(cudaDevAttrComputeCapabilityMajor) +
                      10 * device_attribute(cudaDevAttrComputeCapabilityMinor);
  const int archs[] = {__CUDA_ARCH_LIST__};
  for (const int arch : archs) {
    if (arch == current) return arch;
  }
#endif
  return 0;
}

// Whether it is a Hopper GPU, and the kernels for it are not empty.
inline bool has_hopper_kernels() { return own_architecture() == 900; }

}  // namespace
}  // namespace lltm

#endif  // LLTM_DEVICE_CUH_
