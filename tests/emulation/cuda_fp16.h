// Of the tensor cores' files, which are compiled and not run here.
#ifndef LLTM_EMULATED_CUDA_FP16_H_
#define LLTM_EMULATED_CUDA_FP16_H_

struct __half;
__half& __ushort_as_half(unsigned short bits);
float __half2float(const __half& value);

#endif  // LLTM_EMULATED_CUDA_FP16_H_
