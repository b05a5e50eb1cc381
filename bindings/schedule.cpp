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
    : count_(sizes.rows > 0 ? sizes.steps : 0),
      batch_size_(sizes.batch_size),
      reverse_(arguments.reverse),
      uniform_(!arguments.batch_sizes.defined()) {
  if (uniform_) return;
  packed_.reserve(static_cast<size_t>(count_));
  int64_t first = 0;
  const int64_t* const batch_sizes = arguments.batch_sizes.data_ptr<int64_t>();
  for (int64_t t = 0; t < count_; ++t) {
    packed_.push_back({first, batch_sizes[t]});
    first += batch_sizes[t];
  }
  if (reverse_) std::reverse(packed_.begin(), packed_.end());
}

Step Schedule::rows_of(int64_t begin, int64_t end) const {
  if (begin == end) return {0, 0};
  const Step a = (*this)[begin];
  const Step b = (*this)[end - 1];
  const int64_t first = (std::min)(a.first, b.first);
  return {first, (std::max)(a.first + a.rows, b.first + b.rows) - first};
}

std::vector<OldRows> Schedule::old_rows(int64_t begin, int64_t end) const {
  std::vector<OldRows> pieces;
  if (uniform_) {
    const Step later = rows_of((std::min)((std::max)(begin, int64_t(1)), end), end);
    if (begin == 0 && end > 0) append(pieces, {true, 0, (*this)[0].first, batch_size_});
    const int64_t distance = reverse_ ? batch_size_ : -batch_size_;
    append(pieces, {false, later.first + distance, later.first, later.rows});
    return pieces;
  }
  for (int64_t i = begin; i < end; ++i) {
    const Step step = (*this)[i];
    const int64_t known = i == 0 ? 0 : (std::min)(step.rows, (*this)[i - 1].rows);
    if (known > 0) append(pieces, {false, (*this)[i - 1].first, step.first, known});
    append(pieces, {true, known, step.first + known, step.rows - known});
  }
  return pieces;
}

}  // namespace lltm_bindings
