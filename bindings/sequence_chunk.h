// Consecutive steps of a sequence in its backward pass: all of them, or with recompute a few.
#pragma once

#include "schedule.h"
#include "sequence.h"
#include "sequence_products.h"

namespace lltm_bindings {

// What forward kept, or computes again, of the steps [begin, end).
struct Chunk {
  int64_t begin, end;
  Step all;                // its rows
  at::Tensor activations;  // (rows, 3 * state_size)
  at::Tensor cells;        // (rows, state_size)
};

// The old h of a chunk's rows: a piece at a time, or all at once where the pieces are many.
class OldStates {
 public:
  OldStates(const Schedule& schedule, const Chunk& chunk, const at::Tensor& h0,
            const at::Tensor& output);

  // work(first row in the chunk, rows, their old h)
  template <typename Work>
  void for_each(const Chunk& chunk, const Work& work) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      work(pieces_[i].first - chunk.all.first, pieces_[i].rows, states_[i]);
    }
  }

 private:
  std::vector<OldRows> pieces_;
  std::vector<at::Tensor> states_;
};

// The forward pass of a chunk once more: its gates in one product, then the activations.
void recompute_chunk(Chunk& chunk, const SequenceArguments& arguments, const Schedule& schedule,
                     const SequenceProducts& products, const at::Tensor& input,
                     const OldStates& old_states, const at::Tensor& first_cell);

}  // namespace lltm_bindings
