// The gradients of a sequence's weights and bias, which are sums over all rows.
#pragma once

#include "sequence_chunk.h"

namespace lltm_bindings {

// Summed chunk by chunk: those of half types in float, where there are several chunks.
class ParameterGradients {
 public:
  ParameterGradients(const SequenceArguments& arguments, const SequenceSizes& sizes, int64_t chunks,
                     GradientMask mask);

  // d_gates: (rows of the chunk, 3 * state_size)
  void add(const Chunk& chunk, const at::Tensor& d_gates, const at::Tensor& input,
           const OldStates& old_states);

  // Those of a whole sequence that is not packed, in one call of the core. Returns false, and does
  // nothing, where products and sums are faster.
  bool sum_at_once(const SequenceArguments& arguments, const SequenceSizes& sizes,
                   const Chunk& chunk, const at::Tensor& d_gates, const at::Tensor& input,
                   const at::Tensor& h0, const at::Tensor& output);

  // Undefined where they are not wanted.
  at::Tensor d_weights();
  at::Tensor d_bias() const;

 private:
  struct Columns {
    at::Tensor sum;
    bool begun;  // before that there is nothing in it
  };

  // Not before the first recurrence: while a GPU is at work.
  void allocate();
  void add_product(Columns& columns, const at::Tensor& d_gates, const at::Tensor& factor) const;

  const at::Tensor weights_, bias_;  // undefined: its gradient is not wanted
  const int64_t state_size_;
  // A loop over steps adds up B terms in a step, and then T sums. Three times as many err up to 1.7
  // times as much.
  const int64_t longest_sum_;
  const at::ScalarType dtype_, sum_dtype_;
  at::Tensor d_weights_, d_bias_;
  Columns h_columns_, input_columns_;
};

}  // namespace lltm_bindings
