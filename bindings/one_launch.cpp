#include "one_launch.h"

#include <ATen/ops/empty.h>

#include <cstdlib>
#include <vector>

#include "checks.h"
#include "cublas.h"
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

}  // namespace

std::string wanted_sequence_path() { return chosen("LLTM_SEQUENCE_PATH", "loop", "persistent"); }

OneLaunch plan_one_launch(const SequenceArguments& a, const SequenceSizes& sizes, int64_t steps,
                          Pass pass) {
  OneLaunch launch = {{LLTM_SEQUENCE_NONE, 0, 0}, false};
  if (!kWithCuda || !a.input.is_cuda()) return launch;
  const std::string wanted = wanted_sequence_path();
  const bool simple = !a.zoneout_h.defined() && !a.zoneout_c.defined();
  if (simple && wanted != "loop") {
    with_core(a.input, [&](auto core, CUstream_st*) {
      launch.tf32 = allows_tf32(a.input);
      check_status(core.sequence_plan(pass == Pass::kBackward, launch.tf32, steps, sizes.batch_size,
                                      sizes.state_size, &launch.plan),
                   "sequence_plan");
    });
  }
  TORCH_CHECK(wanted != "persistent" || launch.plan.path != LLTM_SEQUENCE_NONE,
              "lltm_decoupled: LLTM_SEQUENCE_PATH=persistent, and there is no such kernel for ",
              simple ? "" : "zoneout, or for ", shown(steps), steps == 1 ? " step" : " steps",
              " of batch size ", shown(sizes.batch_size), " and state size ",
              shown(sizes.state_size), " in ", shown(a.input.scalar_type()), " on ",
              a.input.device());
  return launch;
}

Exchange::Exchange(const OneLaunch& launch, const at::Tensor& like)
    : wanted_(launch.plan.path == LLTM_SEQUENCE_GRID) {
  if (!wanted_) return;
  workspace_ = at::empty({launch.plan.workspace}, like.options().dtype(at::kByte));
  options_ = {launch.tf32, workspace_.data_ptr(), const_cast<int32_t*>(failure_number()),
              patience(), 0};
}

PackedRows::PackedRows(const Schedule& schedule, const SequenceArguments& a)
    : steps_(schedule.steps()), reverse_(a.reverse) {
  if (schedule.is_uniform()) return;
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(steps_ + 1));
  for (int64_t t = 0; t < steps_; ++t) {
    numbers.push_back(schedule[reverse_ ? steps_ - 1 - t : t].first);
  }
  numbers.push_back(a.input.size(0));
  first_rows_ = at::empty({steps_ + 1}, a.input.options().dtype(at::kLong));
  const DeviceScope scope(a.input);
  check_status(
      numbers_to_cuda(steps_ + 1, numbers.data(), first_rows_.data_ptr<int64_t>(), scope.stream),
      "numbers_to_cuda");
}

const int64_t* PackedRows::of(int64_t begin, int64_t end) const {
  if (!first_rows_.defined()) return nullptr;
  return first_rows_.data_ptr<int64_t>() + (reverse_ ? steps_ - end : begin);
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
