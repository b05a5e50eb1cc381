// The loops of the host twins. Each file that includes this compiles them for its own instruction
// set, so everything here has internal linkage: the linker must not merge the copies.
#ifndef LLTM_CELL_HOST_LOOPS_H_
#define LLTM_CELL_HOST_LOOPS_H_

#include "cell_host.h"
#include "lltm_math.h"
#include "lltm_types.h"

namespace lltm {
namespace {

template <bool kHasBias, typename S>
LLTM_INLINE ComputeType<S> load_gate(const S* gates, const S* bias, int64_t unit) {
  return kHasBias ? load(gates[unit]) + load(bias[unit]) : load(gates[unit]);
}

// One row. A function of its own because compilers believe `restrict` on parameters only, and
// vectorise a loop over this many arrays only if they do.
template <bool kHasBias, typename S>
void forward_row(int64_t H, const S* LLTM_RESTRICT gates, const S* LLTM_RESTRICT bias,
                 const S* LLTM_RESTRICT old_cell, S* LLTM_RESTRICT new_h,
                 S* LLTM_RESTRICT new_cell) {
  for (int64_t j = 0; j < H; ++j) {
    const CellState<ComputeType<S>> state =
        cell_forward(load_gate<kHasBias>(gates, bias, j), load_gate<kHasBias>(gates, bias, H + j),
                     load_gate<kHasBias>(gates, bias, 2 * H + j), load(old_cell[j]));
    store(state.new_h, new_h + j);
    store(state.new_cell, new_cell + j);
  }
}

template <bool kHasBias, typename S>
void sigmoid_row(int64_t H, const S* LLTM_RESTRICT gates, const S* LLTM_RESTRICT bias,
                 S* LLTM_RESTRICT activation) {
  for (int64_t j = 0; j < H; ++j) {
    store(sigmoid(load_gate<kHasBias>(gates, bias, j)), activation + j);
  }
}

template <bool kHasBias, typename S>
void elu_row(int64_t H, const S* LLTM_RESTRICT gates, const S* LLTM_RESTRICT bias,
             S* LLTM_RESTRICT activation) {
  for (int64_t j = 0; j < H; ++j) {
    store(elu(load_gate<kHasBias>(gates, bias, j)), activation + j);
  }
}

template <bool kHasBias, typename S>
void forward_rows(const CellForward<S>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    const S* gates = a.gates + 3 * at;
    forward_row<kHasBias>(H, gates, a.bias, a.old_cell + at, a.new_h + at, a.new_cell + at);
    // Saving the activations is the rare case: recomputed here, the loop above stays lean.
    if (a.input_gate) sigmoid_row<kHasBias>(H, gates, a.bias, a.input_gate + at);
    if (a.output_gate) {
      sigmoid_row<kHasBias>(H, gates + H, kHasBias ? a.bias + H : a.bias, a.output_gate + at);
    }
    if (a.candidate_cell) {
      elu_row<kHasBias>(H, gates + 2 * H, kHasBias ? a.bias + 2 * H : a.bias,
                        a.candidate_cell + at);
    }
  }
}

template <bool kHasBias, bool kHasGradH, bool kHasGradCell, typename S>
void backward_row(int64_t H, const S* LLTM_RESTRICT grad_h, const S* LLTM_RESTRICT grad_cell,
                  const S* LLTM_RESTRICT gates, const S* LLTM_RESTRICT bias,
                  const S* LLTM_RESTRICT new_cell, S* LLTM_RESTRICT d_gates,
                  S* LLTM_RESTRICT d_old_cell) {
  typedef ComputeType<S> T;
  for (int64_t j = 0; j < H; ++j) {
    const CellGradient<ComputeType<S>> gradient = cell_backward(
        kHasGradH, kHasGradH ? load(grad_h[j]) : T(0), kHasGradCell ? load(grad_cell[j]) : T(0),
        load_gate<kHasBias>(gates, bias, j), load_gate<kHasBias>(gates, bias, H + j),
        load_gate<kHasBias>(gates, bias, 2 * H + j), load(new_cell[j]));
    store(gradient.d_input, d_gates + j);
    store(gradient.d_output, d_gates + H + j);
    store(gradient.d_candidate, d_gates + 2 * H + j);
    store(gradient.d_old_cell, d_old_cell + j);
  }
}

template <bool kHasBias, bool kHasGradH, bool kHasGradCell, typename S>
void backward_rows(const CellBackward<S>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    backward_row<kHasBias, kHasGradH, kHasGradCell>(
        H, kHasGradH ? a.grad_h + at : nullptr, kHasGradCell ? a.grad_cell + at : nullptr,
        a.gates + 3 * at, a.bias, a.new_cell + at, a.d_gates + 3 * at, a.d_old_cell + at);
  }
}

template <typename S>
void forward_loop(const CellForward<S>& a) {
  a.bias ? forward_rows<true>(a) : forward_rows<false>(a);
}

template <bool kHasBias, typename S>
void backward_with_bias(const CellBackward<S>& a) {
  if (a.grad_h && a.grad_cell) return backward_rows<kHasBias, true, true>(a);
  if (a.grad_h) return backward_rows<kHasBias, true, false>(a);
  return a.grad_cell ? backward_rows<kHasBias, false, true>(a)
                     : backward_rows<kHasBias, false, false>(a);
}

template <typename S>
void backward_loop(const CellBackward<S>& a) {
  a.bias ? backward_with_bias<true>(a) : backward_with_bias<false>(a);
}

}  // namespace
}  // namespace lltm

// Defines the table of the including file's loops.
#define LLTM_DEFINE_HOST_CELL(name)                                               \
  const HostCell name = {&forward_loop<float>,      &forward_loop<double>,        \
                         &forward_loop<lltm_half>,  &forward_loop<lltm_bfloat16>, \
                         &backward_loop<float>,     &backward_loop<double>,       \
                         &backward_loop<lltm_half>, &backward_loop<lltm_bfloat16>};

#endif  // LLTM_CELL_HOST_LOOPS_H_
