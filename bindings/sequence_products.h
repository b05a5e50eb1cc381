// The products of a sequence with its weights, whose columns are those of [h, input].
#pragma once

#include <ATen/core/Tensor.h>

#include "matrix.h"
#include "one_launch.h"
#include "sequence.h"

namespace lltm_bindings {

// How the steps are taken.
enum class Path {
  kProductAndStep,  // a product and a pointwise call each
  kFusedSteps,      // on a GPU: one launch each, with the product inside
  kOneLaunch,       // on a GPU: all of them at once
};

struct Way {
  Path path;
  OneLaunch launch;  // of kOneLaunch
};

// On a checked sequence; `steps`: of one launch, where all of them are taken at once.
Way choose_way(const SequenceArguments& arguments, const SequenceSizes& sizes, int64_t steps,
               Pass pass);

class SequenceProducts {
 public:
  SequenceProducts(const SequenceArguments& arguments, const SequenceSizes& sizes, Pass pass);

  // (3 * state_size, state_size + input_features) dense; the first columns are those of h
  const at::Tensor& weights() const { return weights_; }
  // These, (3 * state_size, state_size), rows of stride(0). A view takes as long as an allocation:
  // it is made for whoever asks first.
  const at::Tensor& weights_h() const;
  // (state_size, 3 * state_size), as at::mm reads it fastest on this device
  at::Tensor weights_h_t() const { return weights_h_t_.defined() ? weights_h_t_ : weights_h().t(); }
  // the same, and weights_h, for the core's own product; undefined where ATen multiplies
  const PackedFactor& packed_weights_h_t() const { return packed_weights_h_t_; }
  const PackedFactor& packed_weights_h() const { return packed_weights_h_; }
  // (state_size, 3 * state_size) dense
  at::Tensor weights_h_transposed() const;

  // gates = input @ weights_x^T + bias, of many steps at once: of as many rows of the dense input
  // as gates has, from `first` on.
  void input_gates(const at::Tensor& gates, const at::Tensor& input, int64_t first) const;
  // The same without the bias, which one launch of all steps adds. With one ATen asks cuBLASLt, and
  // in every call its heuristics; its kernels with a bias for double take twice as long.
  void input_product(const at::Tensor& gates, const at::Tensor& input, int64_t first) const;
  // (3 * state_size) dense, or undefined
  const at::Tensor& bias() const { return bias_; }
  // Rows of d_input from `first` on = d_gates @ weights_x
  void d_input(const at::Tensor& d_input, int64_t first, const at::Tensor& d_gates) const;

 private:
  at::Tensor weights_x() const { return weights_.narrow(1, state_size_, input_features_); }
  bool multiply_by_core(const at::Tensor& out, int64_t out_first, const at::Tensor& factor,
                        int64_t first, int64_t rows, bool transposed) const;

  const int64_t state_size_, input_features_;
  const at::Tensor weights_;
  at::Tensor bias_, weights_h_t_;
  mutable at::Tensor weights_h_;
  PackedFactor packed_weights_h_t_, packed_weights_h_;
};

}  // namespace lltm_bindings
