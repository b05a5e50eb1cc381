// The C ABI of the host twins, and the choice of their instruction set.
#include "cell_host.h"

#include "cell_host_loops.h"
#include "lltm.h"

namespace lltm {

LLTM_DEFINE_HOST_CELL(host_cell_baseline)

static const HostCell& host_cell() {
#ifdef LLTM_HOST_X86_VARIANTS
  if (has_avx512()) return host_cell_avx512;
  if (has_avx2()) return host_cell_avx2;
#endif
  return host_cell_baseline;
}

static void run(const CellForward<float>& a) { host_cell().forward_float(a); }
static void run(const CellForward<double>& a) { host_cell().forward_double(a); }
static void run(const CellForward<lltm_half>& a) { host_cell().forward_half(a); }
static void run(const CellForward<lltm_bfloat16>& a) { host_cell().forward_bfloat16(a); }
static void run(const CellBackward<float>& a) { host_cell().backward_float(a); }
static void run(const CellBackward<double>& a) { host_cell().backward_double(a); }
static void run(const CellBackward<lltm_half>& a) { host_cell().backward_half(a); }
static void run(const CellBackward<lltm_bfloat16>& a) { host_cell().backward_bfloat16(a); }

template <typename Arguments>
int32_t run_checked(const Arguments& a) {
  const int32_t status = check(a);
  if (status == 0 && !is_empty(a)) run(a);
  return status;
}

template int32_t run_checked(const CellForward<float>&);
template int32_t run_checked(const CellForward<double>&);
template int32_t run_checked(const CellForward<lltm_half>&);
template int32_t run_checked(const CellForward<lltm_bfloat16>&);
template int32_t run_checked(const CellBackward<float>&);
template int32_t run_checked(const CellBackward<double>&);
template int32_t run_checked(const CellBackward<lltm_half>&);
template int32_t run_checked(const CellBackward<lltm_bfloat16>&);

}  // namespace lltm

#define LLTM_DEFINE_CELL_CPU(name, type)                                                           \
  int32_t lltm_cell_forward_cpu_##name(int64_t batch_size, int64_t state_size, const type* gates,  \
                                       const type* bias, const type* old_cell, type* new_h,        \
                                       type* new_cell, type* input_gate, type* output_gate,        \
                                       type* candidate_cell, CUstream_st*) noexcept {              \
    const lltm::CellForward<type> arguments = {batch_size,  state_size,    gates,    bias,         \
                                               old_cell,    new_h,         new_cell, input_gate,   \
                                               output_gate, candidate_cell};                       \
    return lltm::run_checked(arguments);                                                           \
  }                                                                                                \
  int32_t lltm_cell_backward_cpu_##name(int64_t batch_size, int64_t state_size,                    \
                                        const type* grad_h, const type* grad_cell,                 \
                                        const type* gates, const type* bias, const type* new_cell, \
                                        type* d_gates, type* d_old_cell, CUstream_st*) noexcept {  \
    const lltm::CellBackward<type> arguments = {batch_size, state_size, grad_h,  grad_cell, gates, \
                                                bias,       new_cell,   d_gates, d_old_cell};      \
    return lltm::run_checked(arguments);                                                           \
  }

LLTM_DEFINE_CELL_CPU(float, float)
LLTM_DEFINE_CELL_CPU(double, double)
LLTM_DEFINE_CELL_CPU(half, lltm_half)
LLTM_DEFINE_CELL_CPU(bfloat16, lltm_bfloat16)
