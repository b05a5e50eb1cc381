// The loops of the step's host twins, compiled for several instruction sets as those of
// cell_host_loops.h are, and with internal linkage for the same reason.
#ifndef LLTM_STEP_HOST_LOOPS_H_
#define LLTM_STEP_HOST_LOOPS_H_

#include "cell_host_loops.h"
#include "lltm_step.h"
#include "step_host.h"

namespace lltm {
namespace {

// One row without zoneout; see forward_row for why it is a function.
template <bool kKeep, typename S>
void step_forward_row(int64_t H, S* LLTM_RESTRICT input_gate, S* LLTM_RESTRICT output_gate,
                      S* LLTM_RESTRICT candidate_cell, ComputeType<S>* LLTM_RESTRICT cell,
                      S* LLTM_RESTRICT new_h, S* LLTM_RESTRICT new_cell) {
  for (int64_t j = 0; j < H; ++j) {
    const CellState<ComputeType<S>> state =
        cell_forward(load(input_gate[j]), load(output_gate[j]), load(candidate_cell[j]), cell[j]);
    cell[j] = state.new_cell;
    store(state.new_h, new_h + j);
    if (kKeep) {
      store(state.new_cell, new_cell + j);
      store(state.input_gate, input_gate + j);
      store(state.output_gate, output_gate + j);
      store(state.candidate_cell, candidate_cell + j);
    }
  }
}

template <typename S>
void step_forward_loop(const StepForward<S>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    S* const gates = a.gates + 3 * at;
    if (a.keep_h || a.keep_cell) {
      for (int64_t j = 0; j < H; ++j) {
        step_forward_unit(a, row, j, load(gates[j]), load(gates[H + j]), load(gates[2 * H + j]));
      }
      continue;
    }
    if (a.new_cell) {
      step_forward_row<true>(H, gates, gates + H, gates + 2 * H, a.cell + at, a.new_h + at,
                             a.new_cell + at);
    } else {
      step_forward_row<false, S>(H, gates, gates + H, gates + 2 * H, a.cell + at, a.new_h + at,
                                 nullptr);
    }
    if (a.state_h) memcpy(a.state_h + at, a.new_h + at, static_cast<size_t>(H) * sizeof(S));
  }
}

template <bool kHasGradOutput, bool kHasDH, typename S>
void step_backward_row(int64_t H, const S* LLTM_RESTRICT grad_output,
                       const S* LLTM_RESTRICT activations, const S* LLTM_RESTRICT new_cell,
                       const S* LLTM_RESTRICT d_h, ComputeType<S>* LLTM_RESTRICT d_cell,
                       S* LLTM_RESTRICT d_gates) {
  typedef ComputeType<S> T;
  for (int64_t j = 0; j < H; ++j) {
    const T later = kHasDH ? load(d_h[j]) : T(0);
    const T grad_h = kHasGradOutput ? load(grad_output[j]) + later : later;
    const CellGradient<T> gradient = cell_backward_saved(
        kHasGradOutput || kHasDH, grad_h, d_cell[j], load(activations[j]), load(activations[H + j]),
        load(activations[2 * H + j]), load(new_cell[j]));
    store(gradient.d_input, d_gates + j);
    store(gradient.d_output, d_gates + H + j);
    store(gradient.d_candidate, d_gates + 2 * H + j);
    d_cell[j] = gradient.d_old_cell;
  }
}

template <bool kHasGradOutput, bool kHasDH, typename S>
void step_backward_rows(const StepBackward<S>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    step_backward_row<kHasGradOutput, kHasDH>(
        H, kHasGradOutput ? a.grad_output + at : nullptr, a.activations + 3 * at, a.new_cell + at,
        kHasDH ? a.d_h + at : nullptr, a.d_cell + at, a.d_gates + 3 * at);
  }
}

template <typename S>
void step_backward_loop(const StepBackward<S>& a) {
  if (a.keep_h || a.keep_cell) {
    for (int64_t row = 0; row < a.batch_size; ++row) {
      for (int64_t j = 0; j < a.state_size; ++j) {
        const ComputeType<S> d_h = a.d_h ? load(a.d_h[row * a.state_size + j]) : ComputeType<S>(0);
        step_backward_unit(a, row, j, a.d_h != nullptr, d_h);
      }
    }
    return;
  }
  if (a.grad_output && a.d_h) return step_backward_rows<true, true>(a);
  if (a.grad_output) return step_backward_rows<true, false>(a);
  return a.d_h ? step_backward_rows<false, true>(a) : step_backward_rows<false, false>(a);
}

}  // namespace
}  // namespace lltm

// Defines the table of the including file's loops.
#define LLTM_DEFINE_HOST_STEP(name)                                                         \
  const HostStep name = {&step_forward_loop<float>,      &step_forward_loop<double>,        \
                         &step_forward_loop<lltm_half>,  &step_forward_loop<lltm_bfloat16>, \
                         &step_backward_loop<float>,     &step_backward_loop<double>,       \
                         &step_backward_loop<lltm_half>, &step_backward_loop<lltm_bfloat16>};

#endif  // LLTM_STEP_HOST_LOOPS_H_
