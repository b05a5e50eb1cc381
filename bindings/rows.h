// Rows of a pointwise call, split over torch's threads where that pays.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

namespace lltm_bindings {

// Units below which a second CPU thread costs more than it saves.
const int64_t kUnitsPerThread = 16384;

// Runs work(first_row, rows) over all rows: one launch on a GPU, parts for torch's threads on a
// CPU. Where this file is compiled without OpenMP (build_support/plan.py says where and why)
// at::parallel_for runs them in the calling thread.
template <typename Work>
void for_rows(const at::Tensor& like, int64_t rows, int64_t width, const Work& work) {
  if (like.is_cuda()) return work(0, rows);
  const int64_t grain = kUnitsPerThread / (width > 0 ? width : 1) + 1;
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) { work(begin, end - begin); });
}

}  // namespace lltm_bindings
