// The gradient of one unit of a step, in two parts: what does not depend on d_h, and the rest.
#ifndef LLTM_SEQUENCE_GRADIENT_CUH_
#define LLTM_SEQUENCE_GRADIENT_CUH_

#include <cuda_runtime.h>

#include "lltm_math.h"

namespace lltm {
namespace {

// What a step needs of its saved values, for one unit: nothing here depends on d_h.
template <typename Value>
struct Coefficients {
  Value grad_output;
  Value d_cell_of_h;  // and so on: the derivative of the cell with respect to h
  Value d_output_of_h, d_input_of_cell, d_candidate_of_cell;
};

template <typename Math, typename Value>
__device__ __forceinline__ Coefficients<Value> coefficients(Value input_gate, Value output_gate,
                                                            Value candidate_cell, Value new_cell,
                                                            Value grad_output) {
  const Value tanh_cell = Math::tanh(new_cell);
  const Value slope = candidate_cell > Value(0) ? Value(1) : candidate_cell + Value(1);
  Coefficients<Value> c;
  c.grad_output = grad_output;
  c.d_cell_of_h = output_gate * (Value(1) - tanh_cell * tanh_cell);
  c.d_output_of_h = tanh_cell * (Value(1) - output_gate) * output_gate;
  c.d_input_of_cell = candidate_cell * (Value(1) - input_gate) * input_gate;
  c.d_candidate_of_cell = input_gate * slope;
  return c;
}

// -> d_gates of one unit; d_cell goes on to the step before.
template <typename Value>
__device__ __forceinline__ void differentiate(const Coefficients<Value>& c, bool flows, Value d_h,
                                              Value& d_cell, Value* d_gates) {
  const Value grad_h = d_h + c.grad_output;
  if (flows) d_cell += grad_h * c.d_cell_of_h;
  d_gates[0] = d_cell * c.d_input_of_cell;
  d_gates[1] = flows ? grad_h * c.d_output_of_h : Value(0);
  d_gates[2] = d_cell * c.d_candidate_of_cell;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRADIENT_CUH_
