// The arithmetic of one unit, for both ways to reach its numbers.
#pragma once

template <typename T>
struct Unit {
  T input_gate, output_gate, candidate, new_cell, new_h;
};

template <typename T>
struct UnitGradient {
  T d_input_gate, d_output_gate, d_candidate, d_old_cell;
};

template <typename T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <typename T>
__device__ Unit<T> unit_forward(T input_sum, T output_sum, T candidate_sum, T old_cell) {
  Unit<T> unit;
  unit.input_gate = sigmoid(input_sum);
  unit.output_gate = sigmoid(output_sum);
  unit.candidate = candidate_sum > T(0) ? candidate_sum : expm1(candidate_sum);
  unit.new_cell = old_cell + unit.candidate * unit.input_gate;
  unit.new_h = tanh(unit.new_cell) * unit.output_gate;
  return unit;
}

template <typename T>
__device__ UnitGradient<T> unit_backward(T grad_h, T grad_cell, T input_gate, T output_gate,
                                         T candidate, T new_cell) {
  const T tanh_cell = tanh(new_cell);
  const T d_cell = grad_cell + grad_h * output_gate * (T(1) - tanh_cell * tanh_cell);
  UnitGradient<T> gradient;
  gradient.d_input_gate = d_cell * candidate * input_gate * (T(1) - input_gate);
  gradient.d_output_gate = grad_h * tanh_cell * output_gate * (T(1) - output_gate);
  // ELU grows by 1 above zero, and by its own value plus 1 below.
  gradient.d_candidate = d_cell * input_gate * (candidate > T(0) ? T(1) : candidate + T(1));
  gradient.d_old_cell = d_cell;
  return gradient;
}
