// Programmatic dependent launch: the blocks of a kernel start while the one before it in the stream
// ends, and wait there until its memory is visible. Of Hopper and later GPUs, and of CUDA 12.3,
// since when graphs capture it, as programmatic edges.
#ifndef LLTM_DEPENDENT_LAUNCH_CUH_
#define LLTM_DEPENDENT_LAUNCH_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "device.cuh"

#if CUDART_VERSION >= 12030
#define LLTM_DEPENDENT_LAUNCH 1
#endif

namespace lltm {
namespace {

// What a kernel that is launched so does before it reads or writes memory. From then on the next
// one may start to wait.
__device__ __forceinline__ void await_earlier_kernels() {
#if defined(LLTM_DEPENDENT_LAUNCH) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#ifdef LLTM_DEPENDENT_LAUNCH
// Whether the kernels wait: the GPU and the code that it runs; and whether runtime and driver
// capture it.
inline bool has_dependent_launch() {
  int runtime = 0, driver = 0;
  if (status_of(cudaRuntimeGetVersion(&runtime)) || runtime < 12030) return false;
  if (status_of(cudaDriverGetVersion(&driver)) || driver < 12030) return false;
  return own_architecture() >= 900;
}
#endif

template <typename... Parameters>
int32_t launch_dependent(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                         cudaStream_t stream, Parameters... values) {
#ifdef LLTM_DEPENDENT_LAUNCH
  if (has_dependent_launch()) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t config = {dim3(blocks), dim3(threads), 0, stream, &attribute, 1};
    void* parameters[] = {&values...};
    return status_of(
        cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), parameters));
  }
#endif
  kernel<<<blocks, threads, 0, stream>>>(values...);
  return static_cast<int32_t>(cudaGetLastError());
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_DEPENDENT_LAUNCH_CUH_
