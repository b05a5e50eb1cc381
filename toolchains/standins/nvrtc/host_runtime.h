/* Stand-in: NVRTC declares no function of the host's runtime beyond those that a device has too. */
#pragma once

#include <cuda_runtime.h>

__device__ cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int);
__device__ cudaError_t cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t,
                                                   cudaStream_t);
