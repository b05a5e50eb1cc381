// A whole sequence on tensors: check, allocate, multiply, call the core step by step. No autograd
// here.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "cell.h"
#include "checks.h"
#include "layout.h"

namespace lltm_bindings {

// N = rows of all steps together: steps * batch_size, or the length of packed data.
struct SequenceArguments {
  at::Tensor input;        // (steps, batch_size, input_features), or packed (N, input_features)
  at::Tensor weights;      // (3 * state_size, state_size + input_features)
  at::Tensor bias;         // undefined, (3 * state_size) or (1, 3 * state_size)
  at::Tensor h0, c0;       // (batch_size, state_size); both undefined: zeros
  at::Tensor batch_sizes;  // of packed data, int64 on the CPU; else undefined
  bool reverse;            // from the last step to the first
  bool recompute;          // keep nothing of the steps for backward
  at::Tensor zoneout_h;    // bool, of the output's shape: which units keep their h; or undefined
  at::Tensor zoneout_c;    // the same for the cell
};

struct SequenceOutputs {
  at::Tensor output;    // (steps, batch_size, state_size), or packed (N, state_size)
  at::Tensor h_n, c_n;  // (batch_size, state_size)
  // For backward. Without recompute: the activations (N, 3 * state_size) and the cells before
  // zoneout (N, state_size). With it: nothing, and the cells before every kStepsPerChunk-th step
  // (chunks, batch_size, state_size) in the type they are computed in.
  at::Tensor activations, cells;
};

// With recompute, and where nothing is kept, the products with the input are those of so many steps
// at a time.
const int64_t kStepsPerChunk = 32;
inline int64_t chunks_of(int64_t steps) { return (steps + kStepsPerChunk - 1) / kStepsPerChunk; }

enum class Keep { kNothing, kForBackward };

SequenceOutputs run_sequence_forward(const SequenceArguments& arguments, Keep keep);

struct SequenceGradients {
  at::Tensor output, h_n, c_n;  // each undefined where nothing flows
};

SequenceSizes check_sequence_backward(const SequenceGradients& grads,
                                      const SequenceArguments& arguments, const at::Tensor& output,
                                      const at::Tensor& activations, const at::Tensor& cells);

CellGradients run_sequence_backward(const SequenceGradients& grads,
                                    const SequenceArguments& arguments, const at::Tensor& output,
                                    const at::Tensor& activations, const at::Tensor& cells,
                                    GradientMask mask);

// The operators' functions; their schemas are in module.cpp.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sequence(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> sequence_forward(
    const at::Tensor& input, const at::Tensor& weights, const OptionalTensor& bias,
    const OptionalTensor& h0, const OptionalTensor& c0, const OptionalTensor& batch_sizes,
    bool reverse, bool recompute, const OptionalTensor& zoneout_h, const OptionalTensor& zoneout_c);

CellGradients sequence_backward(const OptionalTensor& grad_output, const OptionalTensor& grad_h_n,
                                const OptionalTensor& grad_c_n, const at::Tensor& input,
                                const at::Tensor& weights, const OptionalTensor& bias,
                                const OptionalTensor& h0, const OptionalTensor& c0,
                                const at::Tensor& output, const at::Tensor& activations,
                                const at::Tensor& cells, const OptionalTensor& batch_sizes,
                                bool reverse, bool recompute, const OptionalTensor& zoneout_h,
                                const OptionalTensor& zoneout_c, GradientMask mask);

// Raises an error unless batch_sizes is an int64 vector on the CPU.
void check_numbers(const at::Tensor& batch_sizes);

// As plain numbers: dense, and under a transform of torch.func without its wrapping.
at::Tensor plain_batch_sizes(const OptionalTensor& batch_sizes);

inline SequenceArguments sequence_arguments(const at::Tensor& input, const at::Tensor& weights,
                                            const OptionalTensor& bias, const OptionalTensor& h0,
                                            const OptionalTensor& c0,
                                            const OptionalTensor& batch_sizes, bool reverse,
                                            bool recompute, const OptionalTensor& zoneout_h,
                                            const OptionalTensor& zoneout_c) {
  return {input,
          weights,
          tensor_or_undefined(bias),
          tensor_or_undefined(h0),
          tensor_or_undefined(c0),
          plain_batch_sizes(batch_sizes),
          reverse,
          recompute,
          tensor_or_undefined(zoneout_h),
          tensor_or_undefined(zoneout_c)};
}

// (batch_size, features) of every step, one after another: a view of what is dense.
inline at::Tensor as_rows(const at::Tensor& tensor) {
  return tensor.dim() == 3 ? tensor.reshape({tensor.size(0) * tensor.size(1), tensor.size(2)})
                           : tensor;
}

}  // namespace lltm_bindings
