#include "schedule.h"

#include <algorithm>

namespace lltm_bindings {
namespace {

// Appends a piece, or lengthens the last one, before it or behind it.
void append(std::vector<OldRows>& pieces, const OldRows& piece) {
  if (piece.rows == 0) return;
  if (!pieces.empty() && pieces.back().from_h0 == piece.from_h0) {
    OldRows& last = pieces.back();
    const bool follows =
        last.first + last.rows == piece.first && last.source + last.rows == piece.source;
    const bool precedes =
        piece.first + piece.rows == last.first && piece.source + piece.rows == last.source;
    if (follows || precedes) {
      last.first = (std::min)(last.first, piece.first);
      last.source = (std::min)(last.source, piece.source);
      last.rows += piece.rows;
      return;
    }
  }
  pieces.push_back(piece);
}

}  // namespace

Schedule::Schedule(const SequenceArguments& arguments, const SequenceSizes& sizes)
    : uniform_(!arguments.batch_sizes.defined()) {
  steps_.reserve(static_cast<size_t>(sizes.steps));
  int64_t first = 0;
  const int64_t* const batch_sizes = uniform_ ? nullptr : arguments.batch_sizes.data_ptr<int64_t>();
  for (int64_t t = 0; t < sizes.steps; ++t) {
    const int64_t rows = uniform_ ? sizes.batch_size : batch_sizes[t];
    steps_.push_back({first, rows});
    first += rows;
  }
  if (arguments.reverse) std::reverse(steps_.begin(), steps_.end());
}

Step Schedule::rows_of(int64_t begin, int64_t end) const {
  if (begin == end) return {0, 0};
  const Step& a = (*this)[begin];
  const Step& b = (*this)[end - 1];
  const int64_t first = (std::min)(a.first, b.first);
  return {first, (std::max)(a.first + a.rows, b.first + b.rows) - first};
}

std::vector<OldRows> Schedule::old_rows(int64_t begin, int64_t end) const {
  std::vector<OldRows> pieces;
  for (int64_t i = begin; i < end; ++i) {
    const Step& step = (*this)[i];
    const int64_t known = i == 0 ? 0 : (std::min)(step.rows, (*this)[i - 1].rows);
    if (known > 0) append(pieces, {false, (*this)[i - 1].first, step.first, known});
    append(pieces, {true, known, step.first + known, step.rows - known});
  }
  return pieces;
}

}  // namespace lltm_bindings
