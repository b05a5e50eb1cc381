/* The types of the C ABI; see lltm.h. */
#ifndef LLTM_ABI_TYPES_H_
#define LLTM_ABI_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
#define LLTM_NOEXCEPT noexcept
#define LLTM_EXTERN_C_BEGIN extern "C" {
#define LLTM_EXTERN_C_END }
#else
#define LLTM_NOEXCEPT
#define LLTM_EXTERN_C_BEGIN
#define LLTM_EXTERN_C_END
#endif

/* A cudaStream_t, without CUDA's headers. */
struct CUstream_st;

/* IEEE binary16, and the upper half of a binary32; as torch's half types lie in memory. */
typedef struct {
  uint16_t bits;
} lltm_half;
typedef struct {
  uint16_t bits;
} lltm_bfloat16;

#endif /* LLTM_ABI_TYPES_H_ */
