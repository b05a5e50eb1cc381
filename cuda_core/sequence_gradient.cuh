// The gradient of one unit of a step, in two parts: what does not depend on d_h, and the rest.
#ifndef LLTM_SEQUENCE_GRADIENT_CUH_
#define LLTM_SEQUENCE_GRADIENT_CUH_

#include <cuda_runtime.h>

namespace lltm {
namespace {

// What a step needs of its saved values, for one unit: nothing here depends on d_h.
struct Coefficients {
  float grad_output;
  float d_cell_of_h;  // and so on: the derivative of the cell with respect to h
  float d_output_of_h, d_input_of_cell, d_candidate_of_cell;
};

template <typename Math>
__device__ __forceinline__ Coefficients coefficients(float input_gate, float output_gate,
                                                     float candidate_cell, float new_cell,
                                                     float grad_output) {
  const float tanh_cell = Math::tanh(new_cell);
  const float slope = candidate_cell > 0.0f ? 1.0f : candidate_cell + 1.0f;
  Coefficients c;
  c.grad_output = grad_output;
  c.d_cell_of_h = output_gate * (1.0f - tanh_cell * tanh_cell);
  c.d_output_of_h = tanh_cell * (1.0f - output_gate) * output_gate;
  c.d_input_of_cell = candidate_cell * (1.0f - input_gate) * input_gate;
  c.d_candidate_of_cell = input_gate * slope;
  return c;
}

// -> d_gates of one unit; d_cell goes on to the step before.
__device__ __forceinline__ void differentiate(const Coefficients& c, bool flows, float d_h,
                                              float& d_cell, float* d_gates) {
  const float grad_h = d_h + c.grad_output;
  if (flows) d_cell += grad_h * c.d_cell_of_h;
  d_gates[0] = d_cell * c.d_input_of_cell;
  d_gates[1] = flows ? grad_h * c.d_output_of_h : 0.0f;
  d_gates[2] = d_cell * c.d_candidate_of_cell;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRADIENT_CUH_
