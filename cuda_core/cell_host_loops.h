// The loops of the host twins. Each file that includes this compiles them for its own instruction
// set, so everything here has internal linkage: the linker must not merge the copies.
#ifndef LLTM_CELL_HOST_LOOPS_H_
#define LLTM_CELL_HOST_LOOPS_H_

#include "cell_host.h"
#include "lltm_math.h"

#if defined(_MSC_VER)
#define LLTM_RESTRICT __restrict
#else
#define LLTM_RESTRICT __restrict__
#endif

namespace lltm {
namespace {

template <bool kHasBias, typename T>
LLTM_INLINE T add_bias(T gate, const T* bias, int64_t unit) {
  return kHasBias ? gate + bias[unit] : gate;
}

// One row. A function of its own because compilers believe `restrict` on parameters only, and
// vectorise a loop over this many arrays only if they do.
template <bool kHasBias, typename T>
void forward_row(int64_t H, const T* LLTM_RESTRICT gates, const T* LLTM_RESTRICT bias,
                 const T* LLTM_RESTRICT old_cell, T* LLTM_RESTRICT new_h,
                 T* LLTM_RESTRICT new_cell) {
  for (int64_t j = 0; j < H; ++j) {
    const CellState<T> state = cell_forward(
        add_bias<kHasBias>(gates[j], bias, j), add_bias<kHasBias>(gates[H + j], bias, H + j),
        add_bias<kHasBias>(gates[2 * H + j], bias, 2 * H + j), old_cell[j]);
    new_h[j] = state.new_h;
    new_cell[j] = state.new_cell;
  }
}

template <bool kHasBias, typename T>
void sigmoid_row(int64_t H, const T* LLTM_RESTRICT gates, const T* LLTM_RESTRICT bias,
                 T* LLTM_RESTRICT activation) {
  for (int64_t j = 0; j < H; ++j) activation[j] = sigmoid(add_bias<kHasBias>(gates[j], bias, j));
}

template <bool kHasBias, typename T>
void elu_row(int64_t H, const T* LLTM_RESTRICT gates, const T* LLTM_RESTRICT bias,
             T* LLTM_RESTRICT activation) {
  for (int64_t j = 0; j < H; ++j) activation[j] = elu(add_bias<kHasBias>(gates[j], bias, j));
}

template <bool kHasBias, typename T>
void forward_rows(const CellForward<T>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    const T* gates = a.gates + 3 * at;
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

template <bool kHasBias, bool kHasGradH, bool kHasGradCell, typename T>
void backward_row(int64_t H, const T* LLTM_RESTRICT grad_h, const T* LLTM_RESTRICT grad_cell,
                  const T* LLTM_RESTRICT gates, const T* LLTM_RESTRICT bias,
                  const T* LLTM_RESTRICT new_cell, T* LLTM_RESTRICT d_gates,
                  T* LLTM_RESTRICT d_old_cell) {
  for (int64_t j = 0; j < H; ++j) {
    const CellGradient<T> gradient = cell_backward(
        kHasGradH, kHasGradH ? grad_h[j] : T(0), kHasGradCell ? grad_cell[j] : T(0),
        add_bias<kHasBias>(gates[j], bias, j), add_bias<kHasBias>(gates[H + j], bias, H + j),
        add_bias<kHasBias>(gates[2 * H + j], bias, 2 * H + j), new_cell[j]);
    d_gates[j] = gradient.d_input;
    d_gates[H + j] = gradient.d_output;
    d_gates[2 * H + j] = gradient.d_candidate;
    d_old_cell[j] = gradient.d_old_cell;
  }
}

template <bool kHasBias, bool kHasGradH, bool kHasGradCell, typename T>
void backward_rows(const CellBackward<T>& a) {
  const int64_t H = a.state_size;
  for (int64_t row = 0; row < a.batch_size; ++row) {
    const int64_t at = row * H;
    backward_row<kHasBias, kHasGradH, kHasGradCell>(
        H, kHasGradH ? a.grad_h + at : nullptr, kHasGradCell ? a.grad_cell + at : nullptr,
        a.gates + 3 * at, a.bias, a.new_cell + at, a.d_gates + 3 * at, a.d_old_cell + at);
  }
}

template <typename T>
void forward_loop(const CellForward<T>& a) {
  a.bias ? forward_rows<true>(a) : forward_rows<false>(a);
}

template <bool kHasBias, typename T>
void backward_with_bias(const CellBackward<T>& a) {
  if (a.grad_h && a.grad_cell) return backward_rows<kHasBias, true, true>(a);
  if (a.grad_h) return backward_rows<kHasBias, true, false>(a);
  return a.grad_cell ? backward_rows<kHasBias, false, true>(a)
                     : backward_rows<kHasBias, false, false>(a);
}

template <typename T>
void backward_loop(const CellBackward<T>& a) {
  a.bias ? backward_with_bias<true>(a) : backward_with_bias<false>(a);
}

}  // namespace
}  // namespace lltm

// Defines the table of the including file's loops.
#define LLTM_DEFINE_HOST_CELL(name)                                                          \
  const HostCell name = {&forward_loop<float>, &forward_loop<double>, &backward_loop<float>, \
                         &backward_loop<double>};

#endif  // LLTM_CELL_HOST_LOOPS_H_
