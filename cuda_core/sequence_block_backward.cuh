// The backward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_

#include "sequence_block.cuh"
#include "sequence_gradient.cuh"

namespace lltm {
namespace {

// What a thread needs of one step, besides d_h and d_cell.
struct Saved {
  float grad_output, input_gate, output_gate, candidate_cell, new_cell;
};

// Eight neighbouring threads share four units: each sums an eighth of the 3 * kWidth d_gates for
// the four, for every row. With two rows each thread then has one unit of one row.
template <typename S, int kWidth, int kRows, bool kPacked>
__global__ void __launch_bounds__(2 * kWidth, 1) backward_kernel(const SequenceBackward<S> a) {
  const int kColumns = 3 * kWidth / 8;  // of a thread
  __shared__ float4 shared_d[2][kRows][3 * kWidth / 4];
  const int H = static_cast<int>(a.shape.state_size);
  const int eighth = threadIdx.x & 7;
  const int four = threadIdx.x >> 3;
  const int unit = 4 * four + (eighth & 3);
  const int my_row = kRows == 2 ? eighth >> 2 : 0;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + my_row;
  const bool inside = row < a.shape.batch_size && unit < H;
  const bool writes = inside && (kRows == 2 || eighth < 4);

  float w[kColumns][4];
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const int column = 32 * (k / 4) + 4 * eighth + k % 4;  // of the padded d_gates
    const int gate = column / kWidth;
    const int from = column % kWidth;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      const int u = 4 * four + v;
      w[k][v] =
          u < H && from < H
              ? load(a.weights[(gate * a.shape.state_size + from) * a.shape.weights_stride + u])
              : 0.0f;
    }
  }

  // d_h = d_gates @ weights, of this thread's unit and row
  const auto product = [&](int buffer) {
    float sums[kRows][4] = {};
#pragma unroll
    for (int j = 0; j < kColumns / 4; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 d = shared_d[buffer][r][8 * j + eighth];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          sums[r][v] += d.x * w[4 * j][v];
          sums[r][v] += d.y * w[4 * j + 1][v];
          sums[r][v] += d.z * w[4 * j + 2][v];
          sums[r][v] += d.w * w[4 * j + 3][v];
        }
      }
    }
    float s[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float even = exchange_sum(eighth & 1, sums[r][0], sums[r][1], 1);
      const float odd = exchange_sum(eighth & 1, sums[r][2], sums[r][3], 1);
      s[r] = exchange_sum(eighth & 2, even, odd, 2);
    }
    return exchange_sum(kRows == 2 && eighth >= 4, s[0], s[kRows - 1], 4);
  };

  const UnitPlaces<kPacked> places(a.shape, !a.shape.reverse, row, unit);
  const StepRows<kPacked>& rows = places.rows;
  const int steps = static_cast<int>(a.shape.steps);
  const auto has = [&](int t) { return inside && t < steps && rows.has(t, row); };
  const auto load_saved = [&](bool has_step, int64_t place) {
    Saved saved = {};
    if (!has_step) return saved;
    const S* const activations = a.activations + places.in_gates(place);
    if (a.grad_output) saved.grad_output = load(a.grad_output[place]);
    saved.input_gate = load(activations[0]);
    saved.output_gate = load(activations[H]);
    saved.candidate_cell = load(activations[2 * H]);
    saved.new_cell = load(a.new_cell[place]);
    return saved;
  };

  // Before the first step nothing flows: its product is that of zeros.
  float* const zeros = reinterpret_cast<float*>(shared_d[1]);
  for (int i = threadIdx.x; i < kRows * 3 * kWidth; i += 2 * kWidth) zeros[i] = 0.0f;
  const int64_t at = row * H + unit;
  float d_cell = inside ? a.d_cell[at] : 0.0f;
  float d_h = inside && a.d_h_n ? load(a.d_h_n[at]) : 0.0f;
  bool had_step = false;
  bool has_next = has(0);
  int64_t next_place = has_next ? places.first() : 0;
  Saved next = load_saved(has_next, next_place);
  __syncthreads();
  for (int t = 0; t < steps; ++t) {
    const int64_t place = next_place;
    const bool has_step = has_next;
    const Saved saved = next;
    has_next = has(t + 1);
    if (has_next) next_place = places.after(place, t, 1);
    next = load_saved(has_next, next_place);
    const Coefficients<float> c =
        coefficients<BlockMath<S>>(saved.input_gate, saved.output_gate, saved.candidate_cell,
                                   saved.new_cell, saved.grad_output);
    const float d_old_h = rounded<S>(product((t + 1) & 1));
    if (had_step) d_h = d_old_h;
    const bool flows = had_step || a.d_h_n || a.grad_output;
    had_step = has_step;
    float d_new_cell = d_cell;
    float d_gates[3];
    differentiate(c, flows, d_h, d_new_cell, d_gates);
    if (has_step) d_cell = d_new_cell;
    float* const shared = reinterpret_cast<float*>(shared_d[t & 1][my_row]);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      d_gates[gate] = has_step ? rounded<S>(d_gates[gate]) : 0.0f;
      shared[gate * kWidth + unit] = d_gates[gate];
    }
    if (writes && has_step) {
      S* const to = a.d_gates + places.in_gates(place);
#pragma unroll
      for (int gate = 0; gate < 3; ++gate) store(d_gates[gate], to + gate * H);
    }
    if (has(t + kAhead)) {
      const int64_t later = places.after(place, t, kAhead);
      const S* const activations = a.activations + places.in_gates(later);
      if (a.grad_output) prefetch(a.grad_output + later);
      prefetch(activations);
      prefetch(activations + H);
      prefetch(activations + 2 * H);
      prefetch(a.new_cell + later);
    }
    __syncthreads();
  }
  const float d_old_h = product((steps - 1) & 1);
  if (had_step) d_h = d_old_h;
  if (writes) {
    store(d_h, a.d_h0 + at);
    a.d_cell[at] = d_cell;
  }
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_BACKWARD_CUH_
