// What the current GPU is, and what this binary has for it.
#ifndef LLTM_DEVICE_CUH_
#define LLTM_DEVICE_CUH_

#include <cuda_runtime.h>

namespace lltm {
namespace {

// 0 where it cannot be asked.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess ? value : 0;
}

// Whether it is a Hopper GPU, and this binary has the machine code in which the kernels for it are
// not empty: it runs PTX of an older one, too.
inline bool has_hopper_kernels() {
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) != 9) return false;
#ifdef __CUDA_ARCH_LIST__
  const int archs[] = {__CUDA_ARCH_LIST__};
  for (const int arch : archs) {
    if (arch == 900) return true;
  }
#endif
  return false;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_DEVICE_CUH_
