// The forward pass of a sequence in one block.
#ifndef LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
#define LLTM_SEQUENCE_BLOCK_FORWARD_CUH_

#include "sequence_block.cuh"

namespace lltm {
namespace {

// Four neighbouring threads share two units: each sums a quarter of the columns for the three gates
// of both, for every row of the block. With two rows each thread then has one unit of one row.
template <typename S, int kWidth, int kRows, bool kPacked>
__global__ void __launch_bounds__(2 * kWidth, 1) forward_kernel(const SequenceForward<S> a) {
  __shared__ float4 shared_h[2][kRows][kWidth / 4];
  const int H = static_cast<int>(a.shape.state_size);
  const int quarter = threadIdx.x & 3;
  const int pair = threadIdx.x >> 2;
  const int unit = 2 * pair + (quarter & 1);
  const int my_row = kRows == 2 ? quarter >> 1 : 0;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + my_row;
  const bool inside = row < a.shape.batch_size && unit < H;
  const bool writes = inside && (kRows == 2 || quarter < 2);

  float w[2][3][kWidth / 4];
#pragma unroll
  for (int v = 0; v < 2; ++v) {
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
      for (int k = 0; k < kWidth / 4; ++k) {
        const int column = 16 * (k / 4) + 4 * quarter + k % 4;
        const int u = 2 * pair + v;
        w[v][gate][k] =
            u < H && column < H
                ? load(a.weights[(gate * a.shape.state_size + u) * a.shape.weights_stride + column])
                : 0.0f;
      }
    }
  }

  const UnitPlaces<kPacked> places(a.shape, a.shape.reverse, row, unit);
  const StepRows<kPacked>& rows = places.rows;
  const int64_t at = row * H + unit;
  float cell = inside ? (a.c0 ? load(a.c0[at]) : a.cell[at]) : 0.0f;
  float h = inside ? load(a.h0[at]) : 0.0f;
  reinterpret_cast<float*>(shared_h[0][my_row])[unit] = h;
  bool has_next = inside && rows.has(0, row);
  int64_t next_place = has_next ? places.first() : 0;
  float next[3];
#pragma unroll
  for (int gate = 0; gate < 3; ++gate) {
    next[gate] = has_next ? load(a.gates[places.in_gates(next_place) + gate * H]) : 0.0f;
  }
  __syncthreads();

  const int steps = static_cast<int>(a.shape.steps);
  for (int t = 0; t < steps; ++t) {
    const int64_t place = next_place;
    const bool has_step = has_next;
    has_next = inside && t + 1 < steps && rows.has(t + 1, row);
    if (has_next) next_place = places.after(place, t, 1);
    const bool prefetches = inside && t + kAhead < steps && rows.has(t + kAhead, row);
    float sums[kRows][2][3] = {};
#pragma unroll
    for (int j = 0; j < kWidth / 16; ++j) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 h = shared_h[t & 1][r][4 * j + quarter];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
#pragma unroll
          for (int gate = 0; gate < 3; ++gate) {
            float& sum = sums[r][v][gate];
            sum += h.x * w[v][gate][4 * j];
            sum += h.y * w[v][gate][4 * j + 1];
            sum += h.z * w[v][gate][4 * j + 2];
            sum += h.w * w[v][gate][4 * j + 3];
          }
        }
      }
    }
    const S* const next_gates = a.gates + places.in_gates(next_place);
    float x[3];
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      float s[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        s[r] = exchange_sum(quarter & 1, sums[r][0][gate], sums[r][1][gate], 1);
      }
      x[gate] = next[gate] + exchange_sum(kRows == 2 && quarter >= 2, s[0], s[kRows - 1], 2);
      if (has_next) next[gate] = load(next_gates[gate * H]);
    }
    const CellState<float> state = cell_forward_by<BlockMath<S>>(x[0], x[1], x[2], cell);
    if (has_step) {
      cell = state.new_cell;
      h = rounded<S>(state.new_h);
    }
    reinterpret_cast<float*>(shared_h[(t + 1) & 1][my_row])[unit] = h;
    if (prefetches) {
      const S* const later = a.gates + places.in_gates(places.after(place, t, kAhead));
      prefetch(later);
      prefetch(later + H);
      prefetch(later + 2 * H);
    }
    if (writes && has_step) {
      store(h, a.output + place);
      if (a.new_cell) {
        S* const gates = a.gates + places.in_gates(place);
        store(state.new_cell, a.new_cell + place);
        store(state.input_gate, gates);
        store(state.output_gate, gates + H);
        store(state.candidate_cell, gates + 2 * H);
      }
    }
    __syncthreads();
  }
  if (!writes) return;
  if (a.cell) a.cell[at] = cell;
  if (a.c_n) store(cell, a.c_n + at);
  if (a.h_n) store(h, a.h_n + at);
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_BLOCK_FORWARD_CUH_
