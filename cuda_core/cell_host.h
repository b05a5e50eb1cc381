// The host twins of the cell's kernels: one body, compiled for several instruction sets.
#ifndef LLTM_CELL_HOST_H_
#define LLTM_CELL_HOST_H_

#include "lltm.h"
#include "lltm_cell.h"

// Where one compiler run can target several instruction sets: GCC and Clang on x86-64.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LLTM_HOST_X86_VARIANTS 1
#endif

#if defined(_MSC_VER)
#define LLTM_RESTRICT __restrict
#else
#define LLTM_RESTRICT __restrict__
#endif

namespace lltm {

// One function for each pass and storage type.
struct HostCell {
  void (*forward_float)(const CellForward<float>&);
  void (*forward_double)(const CellForward<double>&);
  void (*forward_half)(const CellForward<lltm_half>&);
  void (*forward_bfloat16)(const CellForward<lltm_bfloat16>&);
  void (*backward_float)(const CellBackward<float>&);
  void (*backward_double)(const CellBackward<double>&);
  void (*backward_half)(const CellBackward<lltm_half>&);
  void (*backward_bfloat16)(const CellBackward<lltm_bfloat16>&);
};

extern const HostCell host_cell_baseline;
#ifdef LLTM_HOST_X86_VARIANTS
extern const HostCell host_cell_avx2;
extern const HostCell host_cell_avx512;
#endif

// Which of the tables this processor can run.
enum HostIsa { kHostBaseline, kHostAvx2, kHostAvx512 };

static inline HostIsa host_isa() {
#ifdef LLTM_HOST_X86_VARIANTS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    return kHostAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kHostAvx2;
#endif
  return kHostBaseline;
}

}  // namespace lltm

#endif  // LLTM_CELL_HOST_H_
