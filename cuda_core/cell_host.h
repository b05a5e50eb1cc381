// The host twins of the cell's kernels: one body, compiled for several instruction sets.
#ifndef LLTM_CELL_HOST_H_
#define LLTM_CELL_HOST_H_

#include "lltm_cell.h"

// Where one compiler run can target several instruction sets: GCC and Clang on x86-64.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LLTM_HOST_X86_VARIANTS 1
#endif

namespace lltm {

struct HostCell {
  void (*forward_float)(const CellForward<float>&);
  void (*forward_double)(const CellForward<double>&);
  void (*backward_float)(const CellBackward<float>&);
  void (*backward_double)(const CellBackward<double>&);
};

extern const HostCell host_cell_baseline;
#ifdef LLTM_HOST_X86_VARIANTS
extern const HostCell host_cell_avx2;
extern const HostCell host_cell_avx512;
#endif

}  // namespace lltm

#endif  // LLTM_CELL_HOST_H_
