// The gate math, once, for host and device.
#ifndef LLTM_MATH_H_
#define LLTM_MATH_H_

#include "lltm_exp.h"

namespace lltm {

template <typename T>
LLTM_INLINE T elu(T x) {
  return x > T(0) ? x : expm1_nonpositive(x > T(0) ? T(0) : x);
}

// ELU'(x): 1 above zero, exp(x) below.
template <typename T>
LLTM_INLINE T elu_slope(T x) {
  return x > T(0) ? T(1) : exp_nonpositive(x > T(0) ? T(0) : x);
}

template <typename T>
struct CellState {
  T new_h;
  T new_cell;
  T input_gate;
  T output_gate;
  T candidate_cell;
};

// One unit of the cell; a_* are pre-activations, bias included.
template <typename T>
LLTM_INLINE CellState<T> cell_forward(T a_input, T a_output, T a_cell, T old_cell) {
  CellState<T> state;
  state.input_gate = sigmoid(a_input);
  state.output_gate = sigmoid(a_output);
  state.candidate_cell = elu(a_cell);
  state.new_cell = old_cell + state.candidate_cell * state.input_gate;
  state.new_h = tanh_(state.new_cell) * state.output_gate;
  return state;
}

template <typename T>
struct CellGradient {
  T d_input;
  T d_output;
  T d_candidate;
  T d_old_cell;
};

// The mirror image: d_input, d_output, d_candidate are with respect to the pre-activations. Without
// grad_h nothing flows through new_h at all: a zero would turn into NaN where tanh(new_cell) is
// NaN. `slope` is ELU' of the candidate.
template <typename T>
LLTM_INLINE CellGradient<T> cell_gradient(bool has_grad_h, T grad_h, T grad_cell, T input_gate,
                                          T output_gate, T candidate_cell, T slope, T new_cell) {
  const T tanh_cell = tanh_(new_cell);
  CellGradient<T> gradient;
  const T through_h = grad_h * output_gate * (T(1) - tanh_cell * tanh_cell);
  const T d_output = grad_h * tanh_cell * (T(1) - output_gate) * output_gate;
  gradient.d_old_cell = has_grad_h ? through_h + grad_cell : grad_cell;
  gradient.d_input = gradient.d_old_cell * candidate_cell * (T(1) - input_gate) * input_gate;
  gradient.d_output = has_grad_h ? d_output : T(0);
  gradient.d_candidate = gradient.d_old_cell * input_gate * slope;
  return gradient;
}

// From the pre-activations.
template <typename T>
LLTM_INLINE CellGradient<T> cell_backward(bool has_grad_h, T grad_h, T grad_cell, T a_input,
                                          T a_output, T a_cell, T new_cell) {
  return cell_gradient(has_grad_h, grad_h, grad_cell, sigmoid(a_input), sigmoid(a_output),
                       elu(a_cell), elu_slope(a_cell), new_cell);
}

// From the activations: ELU'(x) = ELU(x) + 1 below zero, and 1 above.
template <typename T>
LLTM_INLINE CellGradient<T> cell_backward_saved(bool has_grad_h, T grad_h, T grad_cell,
                                                T input_gate, T output_gate, T candidate_cell,
                                                T new_cell) {
  const T slope = candidate_cell > T(0) ? T(1) : candidate_cell + T(1);
  return cell_gradient(has_grad_h, grad_h, grad_cell, input_gate, output_gate, candidate_cell,
                       slope, new_cell);
}

}  // namespace lltm

#endif  // LLTM_MATH_H_
