// Halves, as the tensor cores' files name them.
#ifndef LLTM_EMULATED_CUDA_FP16_H_
#define LLTM_EMULATED_CUDA_FP16_H_

struct __half {
  unsigned short bits;
};
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
float __half2float(__half value);

#endif  // LLTM_EMULATED_CUDA_FP16_H_
