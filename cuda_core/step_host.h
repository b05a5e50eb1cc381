// The host twins of the step's kernels, as cell_host.h has the cell's.
#ifndef LLTM_STEP_HOST_H_
#define LLTM_STEP_HOST_H_

#include "cell_host.h"
#include "lltm_step.h"

namespace lltm {

struct HostStep {
  void (*forward_float)(const StepForward<float>&);
  void (*forward_double)(const StepForward<double>&);
  void (*forward_half)(const StepForward<lltm_half>&);
  void (*forward_bfloat16)(const StepForward<lltm_bfloat16>&);
  void (*backward_float)(const StepBackward<float>&);
  void (*backward_double)(const StepBackward<double>&);
  void (*backward_half)(const StepBackward<lltm_half>&);
  void (*backward_bfloat16)(const StepBackward<lltm_bfloat16>&);
};

extern const HostStep host_step_baseline;
#ifdef LLTM_HOST_X86_VARIANTS
extern const HostStep host_step_avx2;
extern const HostStep host_step_avx512;
#endif

}  // namespace lltm

#endif  // LLTM_STEP_HOST_H_
