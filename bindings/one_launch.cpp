#include "one_launch.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <cstdlib>

#include "dispatch.h"

namespace lltm_bindings {
namespace {

// Written by kernels.
volatile int32_t* failure_number() {
  static int32_t* const number = new_host_number();
  return number;
}

// Clocks that a block waits for another one. A debugger that halts some of them needs more.
int64_t patience() {
  const char* const value = std::getenv("LLTM_SEQUENCE_PATIENCE");
  return value ? std::strtoll(value, nullptr, 10) : 0;
}

bool allows_tf32(const at::Tensor& like) {
  return like.scalar_type() == at::kFloat && at::globalContext().allowTF32CuBLAS();
}

}  // namespace

std::string wanted_sequence_path() {
  const char* const value = std::getenv("LLTM_SEQUENCE_PATH");
  const std::string path = value ? value : "";
  TORCH_CHECK(path.empty() || path == "loop" || path == "persistent",
              "lltm_decoupled: LLTM_SEQUENCE_PATH must be loop or persistent, got ", path);
  return path;
}

lltm_sequence_plan plan_one_launch(const SequenceArguments& a, const SequenceSizes& sizes,
                                   int64_t steps, Pass pass) {
  lltm_sequence_plan plan = {LLTM_SEQUENCE_NONE, 0, 0};
  if (!kWithCuda || !a.input.is_cuda()) return plan;
  const std::string wanted = wanted_sequence_path();
  // With packed data the rows of two steps differ.
  const bool simple = !a.batch_sizes.defined() && !a.zoneout_h.defined() && !a.zoneout_c.defined();
  if (simple && wanted != "loop") {
    with_core(a.input, [&](auto core, CUstream_st*) {
      check_status(core.sequence_plan(pass == Pass::kBackward, allows_tf32(a.input), steps,
                                      sizes.batch_size, sizes.state_size, &plan),
                   "sequence_plan");
    });
  }
  TORCH_CHECK(wanted != "persistent" || plan.path != LLTM_SEQUENCE_NONE,
              "lltm_decoupled: LLTM_SEQUENCE_PATH=persistent, and there is no such kernel for ",
              simple ? "" : "packed data or zoneout, or for ", steps, " steps of batch size ",
              sizes.batch_size, " and state size ", sizes.state_size, " in ", a.input.scalar_type(),
              " on ", a.input.device());
  return plan;
}

Exchange::Exchange(const lltm_sequence_plan& plan, const at::Tensor& like)
    : wanted_(plan.path == LLTM_SEQUENCE_GRID) {
  if (!wanted_) return;
  workspace_ = at::empty({plan.workspace}, like.options().dtype(at::kByte));
  options_ = {allows_tf32(like), workspace_.data_ptr(), const_cast<int32_t*>(failure_number()),
              patience()};
}

void check_earlier_launches() {
  volatile int32_t* const failure = failure_number();
  if (!failure || *failure == 0) return;
  *failure = 0;
  TORCH_CHECK(false,
              "lltm_decoupled: an earlier sequence did not come to its end: on the GPU one of its "
              "blocks waited for another one for about a second. Its outputs, or the gradients, "
              "are NaN from there on. LLTM_SEQUENCE_PATH=loop takes another way");
}

at::Tensor aligned_to_pairs(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  const auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  const bool aligned = address % static_cast<uintptr_t>(2 * tensor.element_size()) == 0;
  return aligned ? tensor : tensor.clone();
}

}  // namespace lltm_bindings
