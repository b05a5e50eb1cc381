// The rows of d_gates and of [old_h, input] that blocks of parameter_gradients.cu multiply, on
// their way into shared memory.
#ifndef LLTM_PARAMETER_GRADIENT_ROWS_CUH_
#define LLTM_PARAMETER_GRADIENT_ROWS_CUH_

#include <cuda_runtime.h>

#include "lltm_parameter_gradients.h"
#include "packed.cuh"

namespace lltm {
namespace {

const int kThreads = 256;
const int kGates = kTileGates;      // four of a thread
const int kColumns = kTileColumns;  // twice four of a thread
const int kBeside = kColumns / (2 * kGroup);
static_assert(kGates / kGroup * kBeside == kThreads, "a thread has a place in the tile");

// A row of [old_h, input]. The first step's old h is h0, or zero.
template <typename S>
struct OldRow {
  const S* old_h;  // or null
  int64_t state_size;
  const S* input;
  __device__ __forceinline__ OldRow(const SequenceGradients<S>& a, int64_t row)
      : old_h(nullptr), state_size(a.state_size), input(a.input + row * a.input_features) {
    const int64_t old = a.reverse ? row + a.batch_size : row - a.batch_size;
    if (old >= 0 && old < a.rows) {
      old_h = a.output + old * state_size;
    } else if (a.h0) {
      old_h = a.h0 + (a.reverse ? old - a.rows : row) * state_size;
    }
  }
  __device__ __forceinline__ const S* operator()(int64_t k) const {
    if (k >= state_size) return input + (k - state_size);
    return old_h ? old_h + k : reinterpret_cast<const S*>(kZeros);
  }
};

// Parts of a block's rows in shared memory, twice.
template <typename T>
struct Stage {
  static const int kRows = 64 / sizeof(T);
  alignas(16) T d_gates[kRows][kGates];
  alignas(16) T values[kRows][kColumns];
};

// What a thread brings of a stage: groups of four values, in registers until there is room.
template <bool kAligned, typename S>
class Bringer {
  typedef Stage<ComputeType<S>> To;
  static const int kGateGroups = kGates / kGroup;
  static const int kValueGroups = kColumns / kGroup;
  static const int kGateLoads = (To::kRows * kGateGroups + kThreads - 1) / kThreads;
  static const int kValueLoads = To::kRows * kValueGroups / kThreads;

 public:
  __device__ __forceinline__ Bringer(const SequenceGradients<S>& a, int64_t gate, int64_t column)
      : a(a), gate(gate), column(column) {}

  // Of rows from `first` on, up to `end`.
  __device__ __forceinline__ void ask(int64_t first, int64_t end) {
    const int64_t H = a.state_size;
    const int64_t K = H + a.input_features;
#pragma unroll
    for (int i = 0; i < kGateLoads; ++i) {
      const int64_t row = first + gate_row(i);
      const bool inside = row < end;
      const Line<S> line = {a.d_gates + (inside ? row : 0) * 3 * H};
      load_group<kAligned>(d_gates[i], line, gate + gate_group() * kGroup, inside ? 3 * H : 0);
    }
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) {
      const int64_t row = first + value_row(i);
      const bool inside = row < end;
      const OldRow<S> line(a, inside ? row : first);
      load_group<kAligned>(values[i], line, column + value_group() * kGroup, inside ? K : 0);
    }
  }

  // Also adds this thread's d_gates up.
  __device__ __forceinline__ void put(To& to, ComputeType<S> (&bias)[kGroup]) const {
#pragma unroll
    for (int i = 0; i < kGateLoads; ++i) {
      if (gate_row(i) >= To::kRows) continue;
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        to.d_gates[gate_row(i)][gate_group() * kGroup + j] = d_gates[i][j];
        bias[j] += d_gates[i][j];
      }
    }
#pragma unroll
    for (int i = 0; i < kValueLoads; ++i) {
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        to.values[value_row(i)][value_group() * kGroup + j] = values[i][j];
      }
    }
  }

  __device__ __forceinline__ static int gate_group() { return threadIdx.x % kGateGroups; }
  __device__ __forceinline__ static int gate_row(int i) {
    return (i * kThreads + threadIdx.x) / kGateGroups;
  }

 private:
  __device__ __forceinline__ static int value_group() { return threadIdx.x % kValueGroups; }
  __device__ __forceinline__ static int value_row(int i) {
    return (i * kThreads + threadIdx.x) / kValueGroups;
  }

  const SequenceGradients<S>& a;
  const int64_t gate, column;
  Packed<S> d_gates[kGateLoads], values[kValueLoads];
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_PARAMETER_GRADIENT_ROWS_CUH_
