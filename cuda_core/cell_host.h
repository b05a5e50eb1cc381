// The host twins of the cell's kernels: one body, compiled for several instruction sets.
#ifndef LLTM_CELL_HOST_H_
#define LLTM_CELL_HOST_H_

#include "lltm.h"
#include "lltm_cell.h"

// Where there are variants for several instruction sets. GCC and Clang change theirs inside a file.
// For other compilers the build has to give each variant's file flags of its own, and all files
// LLTM_HOST_X86_FLAGS, which says so; without it there is the baseline only.
#if defined(LLTM_HOST_X86_FLAGS) && (defined(__x86_64__) || defined(_M_X64))
#define LLTM_HOST_X86_VARIANTS 1
#elif defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LLTM_HOST_X86_VARIANTS 1
#define LLTM_HOST_X86_PRAGMAS 1
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

// Which of the tables this processor can run, under this operating system.
enum HostIsa { kHostBaseline, kHostAvx2, kHostAvx512 };
HostIsa host_isa();

}  // namespace lltm

#endif  // LLTM_CELL_HOST_H_
