// Which rows of a sequence belong to which step, in the order in which the steps are taken.
#pragma once

#include <vector>

#include "sequence.h"

namespace lltm_bindings {

// Rows [first, first + rows) of the data are rows [0, rows) of the states.
struct Step {
  int64_t first;
  int64_t rows;
};

// Rows [first, first + rows) of the old h of many steps, and where each comes from.
struct OldRows {
  bool from_h0;    // else from the output
  int64_t source;  // its row there
  int64_t first;
  int64_t rows;
};

class Schedule {
 public:
  Schedule(const SequenceArguments& arguments, const SequenceSizes& sizes);

  // Those without rows are none.
  int64_t steps() const { return count_; }
  Step operator[](int64_t i) const {
    if (!uniform_) return packed_[static_cast<size_t>(i)];
    return {(reverse_ ? count_ - 1 - i : i) * batch_size_, batch_size_};
  }
  // Whether every step has all rows.
  bool is_uniform() const { return uniform_; }

  // The rows of the data that steps [begin, end) have together.
  Step rows_of(int64_t begin, int64_t end) const;

  // work(row of the data, row of the states, rows): where the rows of the states have the first of
  // the steps [begin, end) that they have.
  template <typename Work>
  void for_first_rows(int64_t begin, int64_t end, const Work& work) const {
    int64_t known = 0;
    for (int64_t i = begin; i < end; ++i) {
      const Step step = (*this)[i];
      if (step.rows > known) {
        work(step.first + known, known, step.rows - known);
        known = step.rows;
      }
    }
  }

  // The old h of steps [begin, end), in as few pieces as possible.
  std::vector<OldRows> old_rows(int64_t begin, int64_t end) const;

 private:
  const int64_t count_, batch_size_;
  const bool reverse_, uniform_;
  std::vector<Step> packed_;  // the steps, where they differ
};

}  // namespace lltm_bindings
