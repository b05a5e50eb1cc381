// One step of a sequence: the arguments of its two passes, as lltm.h lists them, their checks, and
// what happens to one unit.
#ifndef LLTM_STEP_H_
#define LLTM_STEP_H_

#include <stdint.h>

#include "lltm_cell.h"
#include "lltm_math.h"
#include "lltm_types.h"

namespace lltm {

template <typename S>
struct StepForward {
  int64_t batch_size;
  int64_t state_size;
  S* gates;                  // [B, 3H]
  const uint8_t* keep_h;     // [B, H] or null
  const uint8_t* keep_cell;  // [B, H] or null
  const S* old_h;            // [B, H] or null
  ComputeType<S>* cell;      // [B, H]
  S* new_h;                  // [B, H]
  S* state_h;                // [B, H] or null
  S* new_cell;               // [B, H] or null
};

template <typename S>
struct StepBackward {
  int64_t batch_size;
  int64_t state_size;
  const S* grad_output;      // [B, H] or null
  const S* activations;      // [B, 3H]
  const S* new_cell;         // [B, H]
  const uint8_t* keep_h;     // [B, H] or null
  const uint8_t* keep_cell;  // [B, H] or null
  S* d_h;                    // [B, H] or null
  ComputeType<S>* d_cell;    // [B, H]
  S* d_gates;                // [B, 3H]
};

// A step with its recurrent product: h for the gates, or the next step's d_gates for d_h.
template <typename Step, typename S>
struct StepFused {
  Step step;
  const S* weights;  // forward [3H, H], backward [H, 3H]
  int64_t weights_stride;
  const S* operand;  // forward old_h [B, H], backward d_next_gates [B, 3H]
};

// The argument number of the first that is wrong, counted as in step_forward and step_backward.
template <typename S>
static inline int32_t check(const StepForward<S>& a) {
  const int32_t status = check_sizes(a.batch_size, a.state_size);
  if (status || is_empty(a)) return status;
  if (!a.gates) return -3;
  if (!a.old_h && a.keep_h) return -6;
  if (!a.cell) return -7;
  if (!a.new_h) return -8;
  return 0;
}

template <typename S>
static inline int32_t check(const StepBackward<S>& a) {
  const int32_t status = check_sizes(a.batch_size, a.state_size);
  if (status || is_empty(a)) return status;
  if (!a.activations) return -4;
  if (!a.new_cell) return -5;
  if (!a.d_h && a.keep_h) return -8;
  if (!a.d_cell) return -9;
  if (!a.d_gates) return -10;
  return 0;
}

// Unit j of row `row`, whose pre-activations are a_*.
template <typename S>
LLTM_INLINE void step_forward_unit(const StepForward<S>& a, int64_t row, int64_t j,
                                   ComputeType<S> a_input, ComputeType<S> a_output,
                                   ComputeType<S> a_cell) {
  typedef ComputeType<S> T;
  const int64_t at = row * a.state_size + j;
  const T old_cell = a.cell[at];
  const CellState<T> state = cell_forward(a_input, a_output, a_cell, old_cell);
  const T cell = a.keep_cell && a.keep_cell[at] ? old_cell : state.new_cell;
  const T h = a.keep_h && a.keep_h[at] ? load(a.old_h[at]) : state.new_h;
  a.cell[at] = cell;
  store(h, a.new_h + at);
  if (a.state_h) store(h, a.state_h + at);
  if (a.new_cell) {
    S* const activations = a.gates + row * 3 * a.state_size + j;
    store(state.new_cell, a.new_cell + at);
    store(state.input_gate, activations);
    store(state.output_gate, activations + a.state_size);
    store(state.candidate_cell, activations + 2 * a.state_size);
  }
}

// Unit j of row `row`, for which `d_h` came from later steps if has_d_h.
template <typename S>
LLTM_INLINE void step_backward_unit(const StepBackward<S>& a, int64_t row, int64_t j, bool has_d_h,
                                    ComputeType<S> d_h) {
  typedef ComputeType<S> T;
  const int64_t at = row * a.state_size + j;
  const S* const activations = a.activations + row * 3 * a.state_size + j;
  const T input_gate = load(activations[0]);
  const T output_gate = load(activations[a.state_size]);
  const T candidate_cell = load(activations[2 * a.state_size]);
  const bool keeps_h = a.keep_h && a.keep_h[at];
  const bool keeps_cell = a.keep_cell && a.keep_cell[at];
  const T grad_h =
      a.grad_output ? (has_d_h ? load(a.grad_output[at]) + d_h : load(a.grad_output[at])) : d_h;
  const bool flows = (has_d_h || a.grad_output) && !keeps_h;
  const T grad_cell = a.d_cell[at];
  const CellGradient<T> gradient =
      cell_backward_saved(flows, grad_h, keeps_cell ? T(0) : grad_cell, input_gate, output_gate,
                          candidate_cell, load(a.new_cell[at]));
  S* const d_gates = a.d_gates + row * 3 * a.state_size + j;
  store(gradient.d_input, d_gates);
  store(gradient.d_output, d_gates + a.state_size);
  store(gradient.d_candidate, d_gates + 2 * a.state_size);
  a.d_cell[at] = keeps_cell ? gradient.d_old_cell + grad_cell : gradient.d_old_cell;
  if (a.keep_h) store(keeps_h ? grad_h : T(0), a.d_h + at);
}

}  // namespace lltm

#endif  // LLTM_STEP_H_
