// All steps of a sequence in one launch: the arguments, as lltm.h lists them, and their checks.
#ifndef LLTM_SEQUENCE_H_
#define LLTM_SEQUENCE_H_

#include <stdint.h>

#include "lltm_cell.h"
#include "lltm_types.h"

namespace lltm {

struct SequenceShape {
  int64_t steps;
  int64_t batch_size;
  int64_t state_size;
  int64_t weights_stride;
  bool reverse;
  const int64_t* first_rows;  // [T + 1] or null
};

template <typename S>
struct SequenceForward {
  SequenceShape shape;
  const S* weights;      // [3H, H]
  const S* bias;         // [3H] or null
  S* gates;              // [T, B, 3H]
  const S* h0;           // [B, H] or null
  const S* c0;           // [B, H] or null
  ComputeType<S>* cell;  // [B, H] or null
  S* output;             // [T, B, H]
  S* new_cell;           // [T, B, H] or null
  S* h_n;                // [B, H] or null
  S* c_n;                // [B, H] or null
};

template <typename S>
struct SequenceBackward {
  SequenceShape shape;
  const S* weights;        // [3H, H]
  const S* grad_output;    // [T, B, H] or null
  const S* activations;    // [T, B, 3H]
  const S* new_cell;       // [T, B, H]
  const S* d_h_n;          // [B, H] or null
  const S* d_c_n;          // [B, H] or null
  ComputeType<S>* d_cell;  // [B, H] or null
  S* d_h0;                 // [B, H] or null
  S* d_c0;                 // [B, H] or null
  S* d_gates;              // [T, B, 3H]
};

// Of one launch, which counts some steps ahead.
const int64_t kMostSteps = INT32_MAX - 1024;

static inline bool is_empty(const SequenceShape& s) {
  return s.steps == 0 || s.batch_size == 0 || s.state_size == 0;
}

// Counted as in sequence_forward and sequence_backward.
static inline int32_t check(const SequenceShape& s) {
  if (s.steps < 0) return -1;
  const int32_t status = check_sizes(s.batch_size, s.state_size);
  if (status) return status - 1;
  if (!fits_stride(s.state_size, s.weights_stride)) return -5;
  if (is_empty(s)) return 0;
  // The byte count of [T, B, 3H] must fit.
  const int64_t most = INT64_MAX / (3 * static_cast<int64_t>(sizeof(double)));
  return s.steps > most / (s.batch_size * s.state_size) ? -1 : 0;
}

template <typename S>
static inline int32_t check(const SequenceForward<S>& a) {
  const int32_t status = check(a.shape);
  if (status || is_empty(a.shape)) return status;
  if (a.shape.steps > kMostSteps) return -1;
  if (!a.weights) return -4;
  if (!a.gates) return -9;
  if (!a.cell && !a.c_n) return -12;
  if (!a.output) return -13;
  return 0;
}

template <typename S>
static inline int32_t check(const SequenceBackward<S>& a) {
  const int32_t status = check(a.shape);
  if (status || is_empty(a.shape)) return status;
  if (a.shape.steps > kMostSteps) return -1;
  if (!a.weights) return -4;
  if (!a.activations) return -9;
  if (!a.new_cell) return -10;
  if (!a.d_gates) return -16;
  return 0;
}

}  // namespace lltm

#endif  // LLTM_SEQUENCE_H_
