// The C ABI of the step's host twins.
#include "step_host.h"

#include "lltm.h"
#include "step_host_loops.h"

namespace lltm {

LLTM_DEFINE_HOST_STEP(host_step_baseline)

static const HostStep& host_step() {
#ifdef LLTM_HOST_X86_VARIANTS
  const HostIsa isa = host_isa();
  if (isa == kHostAvx512) return host_step_avx512;
  if (isa == kHostAvx2) return host_step_avx2;
#endif
  return host_step_baseline;
}

static void run(const StepForward<float>& a) { host_step().forward_float(a); }
static void run(const StepForward<double>& a) { host_step().forward_double(a); }
static void run(const StepForward<lltm_half>& a) { host_step().forward_half(a); }
static void run(const StepForward<lltm_bfloat16>& a) { host_step().forward_bfloat16(a); }
static void run(const StepBackward<float>& a) { host_step().backward_float(a); }
static void run(const StepBackward<double>& a) { host_step().backward_double(a); }
static void run(const StepBackward<lltm_half>& a) { host_step().backward_half(a); }
static void run(const StepBackward<lltm_bfloat16>& a) { host_step().backward_bfloat16(a); }

template <typename Arguments>
int32_t run_checked(const Arguments& a) {
  const int32_t status = check(a);
  if (status == 0 && !is_empty(a)) run(a);
  return status;
}

template int32_t run_checked(const StepForward<float>&);
template int32_t run_checked(const StepForward<double>&);
template int32_t run_checked(const StepForward<lltm_half>&);
template int32_t run_checked(const StepForward<lltm_bfloat16>&);
template int32_t run_checked(const StepBackward<float>&);
template int32_t run_checked(const StepBackward<double>&);
template int32_t run_checked(const StepBackward<lltm_half>&);
template int32_t run_checked(const StepBackward<lltm_bfloat16>&);

}  // namespace lltm

#define LLTM_DEFINE_STEP_CPU(name, type, compute)                                                 \
  int32_t lltm_step_forward_cpu_##name(int64_t batch_size, int64_t state_size, type* gates,       \
                                       const uint8_t* keep_h, const uint8_t* keep_cell,           \
                                       const type* old_h, compute* cell, type* new_h,             \
                                       type* state_h, type* new_cell, CUstream_st*) noexcept {    \
    const lltm::StepForward<type> arguments = {batch_size, state_size, gates, keep_h,  keep_cell, \
                                               old_h,      cell,       new_h, state_h, new_cell}; \
    return lltm::run_checked(arguments);                                                          \
  }                                                                                               \
  int32_t lltm_step_backward_cpu_##name(                                                          \
      int64_t batch_size, int64_t state_size, const type* grad_output, const type* activations,   \
      const type* new_cell, const uint8_t* keep_h, const uint8_t* keep_cell, type* d_h,           \
      compute* d_cell, type* d_gates, CUstream_st*) noexcept {                                    \
    const lltm::StepBackward<type> arguments = {batch_size, state_size, grad_output, activations, \
                                                new_cell,   keep_h,     keep_cell,   d_h,         \
                                                d_cell,     d_gates};                             \
    return lltm::run_checked(arguments);                                                          \
  }

LLTM_DEFINE_STEP_CPU(float, float, float)
LLTM_DEFINE_STEP_CPU(double, double, double)
LLTM_DEFINE_STEP_CPU(half, lltm_half, float)
LLTM_DEFINE_STEP_CPU(bfloat16, lltm_bfloat16, float)
