// The gradients of a sequence's weights and bias, as lltm.h lists them, and how their sums are
// shared out.
#ifndef LLTM_PARAMETER_GRADIENTS_H_
#define LLTM_PARAMETER_GRADIENTS_H_

#include <stdint.h>

#include "lltm_products.h"
#include "lltm_types.h"

namespace lltm {

// Gates, and columns, of a block.
const int kGradientTile = 64;

// Each part is the sum over some rows: of d_weights, then of d_bias.
struct GradientParts {
  int64_t columns;  // tiles beside each other
  int64_t tiles;
  int64_t rows;    // of a part
  int64_t count;   // of parts
  int64_t values;  // of a part

  GradientParts(int64_t all_rows, int64_t batch_size, int64_t state_size, int64_t input_features) {
    const int64_t K = state_size + input_features;
    // Four blocks for each processor of a large GPU; on any other too, for the same bits.
    const int64_t kBlocks = 4 * 132;
    const int64_t kFewestRows = 32;
    // A loop over steps adds up B terms in a step, and then T sums. Three times as many err up to
    // 1.7 times as much.
    const int64_t longest = batch_size > 0 ? 3 * (all_rows / batch_size + batch_size) : 1;
    columns = K > 0 ? (K + kGradientTile - 1) / kGradientTile : 1;
    tiles = (3 * state_size + kGradientTile - 1) / kGradientTile * columns;
    const int64_t wanted = tiles < kBlocks ? kBlocks / (tiles > 0 ? tiles : 1) : 1;
    const int64_t share = (all_rows + wanted - 1) / wanted;
    const int64_t most = share < longest ? share : longest;
    rows = ((most > kFewestRows ? most : kFewestRows) + 15) / 16 * 16;
    count = all_rows > rows ? (all_rows + rows - 1) / rows : 1;
    values = 3 * state_size * (K + 1);
  }
};

template <typename S>
struct SequenceGradients {
  int64_t rows;
  int64_t batch_size;
  int64_t state_size;
  int64_t input_features;
  bool reverse;
  const S* d_gates;           // [N, 3H]
  const S* input;             // [N, I]
  const S* h0;                // [B, H] or null
  const S* output;            // [N, H]
  ComputeType<S>* workspace;  // [parts, 3H * (H + I + 1)]
  S* d_weights;               // [3H, H + I] or null
  S* d_bias;                  // [3H] or null
};

template <typename S>
static inline int32_t check(const SequenceGradients<S>& a) {
  const int32_t status = check_product_sizes(a.rows, a.state_size, a.input_features);
  if (status) return status == -1 ? -1 : status - 1;
  if (a.batch_size < 0 || (a.batch_size == 0 ? a.rows > 0 : a.rows % a.batch_size != 0)) return -2;
  if (a.state_size == 0 || (!a.d_weights && !a.d_bias)) return 0;
  if (!a.workspace) return -11;
  if (a.rows == 0) return 0;
  if (!a.d_gates) return -7;
  if (!a.input && a.input_features > 0) return -8;
  return a.output ? 0 : -10;
}

}  // namespace lltm

#endif  // LLTM_PARAMETER_GRADIENTS_H_
