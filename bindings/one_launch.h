// A whole sequence in one launch of the core, on a GPU: whether there is one, and what it needs.
#pragma once

#include <ATen/core/Tensor.h>

#include "lltm.h"
#include "schedule.h"
#include "sequence.h"

namespace lltm_bindings {

enum class Pass { kForward, kBackward };

// What the environment variable LLTM_SEQUENCE_PATH says: "loop", "persistent" or "" (as the core
// plans).
std::string wanted_sequence_path();

// The core's plan for so many steps, and whether products may have the accuracy of TF32: asked
// once, for the two belong together.
struct OneLaunch {
  lltm_sequence_plan plan;
  bool tf32;
};

// On a checked sequence.
OneLaunch plan_one_launch(const SequenceArguments& arguments, const SequenceSizes& sizes,
                          int64_t steps, Pass pass);

// The memory of a launch that spreads over the GPU.
class Exchange {
 public:
  Exchange(const OneLaunch& launch, const at::Tensor& like);
  // null where the plan is another one
  const lltm_sequence_options* options(int64_t steps_before = 0) {
    options_.steps_before = steps_before;
    return wanted_ ? &options_ : nullptr;
  }

 private:
  bool wanted_;
  at::Tensor workspace_;
  lltm_sequence_options options_;
};

// Where the rows of each step of packed data begin, on the GPU.
class PackedRows {
 public:
  PackedRows() : steps_(0), reverse_(false) {}
  PackedRows(const Schedule& schedule, const SequenceArguments& arguments);
  // For the steps [begin, end) of those taken; null where every step has all rows.
  const int64_t* of(int64_t begin, int64_t end) const;

 private:
  int64_t steps_;
  bool reverse_;
  at::Tensor first_rows_;  // (steps + 1)
};

// Raises what an earlier launch reported: it does not wait for any.
void check_earlier_launches();

// Dense, and aligned to pairs of elements, as such a launch reads it.
at::Tensor aligned_to_pairs(const at::Tensor& tensor);

}  // namespace lltm_bindings
