// The whole forward cell in one kernel: products, activations, state. For small sizes, where two
// matrix products and a pointwise kernel take longer to launch than to run.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "fused_product.cuh"
#include "lltm.h"
#include "lltm_cell.h"
#include "lltm_math.h"
#include "lltm_types.h"

namespace lltm {
namespace {

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads) kernel(const CellFused<S> a, int64_t unit_tiles) {
  typedef ComputeType<S> T;
  const int64_t H = a.cell.state_size;
  const int64_t K = H + a.input_features;
  const Place place(unit_tiles);
  await_earlier_kernels();
  const int64_t r = place.row;
  const int64_t u = place.unit;
  const bool inside = r < a.cell.batch_size && u < H;

  // Threads outside compute what the first row or unit does, and drop it.
  const int64_t x_row = inside ? r : 0;
  const int64_t w_row = inside ? u : 0;
  const Row<S> row = {a.old_h + x_row * H, H, a.input + x_row * a.input_features};
  const Line<S> weights[3] = {
      {a.weights + w_row * K}, {a.weights + (H + w_row) * K}, {a.weights + (2 * H + w_row) * K}};
  T sums[3];
  fused_product<kAligned>(sums, place.split, K, row, weights);
  if (place.split != 0 || !inside) return;
  if (a.gates) {
    S* const gates = a.gates + r * 3 * H + u;
    store(sums[0], gates);
    store(sums[1], gates + H);
    store(sums[2], gates + 2 * H);
  }
  if (a.cell.bias) {
    sums[0] += load(a.cell.bias[u]);
    sums[1] += load(a.cell.bias[H + u]);
    sums[2] += load(a.cell.bias[2 * H + u]);
  }
  const int64_t at = r * H + u;
  const CellState<T> state = cell_forward(sums[0], sums[1], sums[2], load(a.cell.old_cell[at]));
  store(state.new_h, a.cell.new_h + at);
  store(state.new_cell, a.cell.new_cell + at);
}

}  // namespace

template <typename S>
int32_t launch(const CellFused<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status || is_empty(a.cell)) return status;
  const int64_t unit_tiles = unit_tiles_of(a.cell.state_size);
  const int64_t blocks = blocks_of(a.cell.batch_size, unit_tiles);
  if (blocks < 0) return -1;
  const unsigned grid = static_cast<unsigned>(blocks);
  // Lines of old_h, input and weights then all begin at a multiple of 16 bytes, or of 8 for half
  // types, which read 8 at a time.
  const bool aligned = a.cell.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.old_h) && is_aligned(a.input) && is_aligned(a.weights);
  if (aligned) return launch_dependent(kernel<true>, grid, kThreads, stream, a, unit_tiles);
  return launch_dependent(kernel<false>, grid, kThreads, stream, a, unit_tiles);
}

template int32_t launch(const CellFused<float>&, cudaStream_t);
template int32_t launch(const CellFused<double>&, cudaStream_t);
template int32_t launch(const CellFused<lltm_half>&, cudaStream_t);
template int32_t launch(const CellFused<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_CELL_FUSED(name, type)                                                         \
  int32_t lltm_cell_fused_forward_cuda_##name(                                                     \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* input,           \
      const type* weights, const type* bias, const type* old_h, const type* old_cell, type* new_h, \
      type* new_cell, type* gates, CUstream_st* stream) noexcept {                                 \
    const lltm::CellFused<type> arguments = {{batch_size, state_size, nullptr, bias, old_cell,     \
                                              new_h, new_cell, nullptr, nullptr, nullptr},         \
                                             input_features,                                       \
                                             input,                                                \
                                             weights,                                              \
                                             old_h,                                                \
                                             gates};                                               \
    return lltm::launch(arguments, stream);                                                        \
  }

LLTM_DEFINE_CELL_FUSED(float, float)
LLTM_DEFINE_CELL_FUSED(double, double)
LLTM_DEFINE_CELL_FUSED(half, lltm_half)
LLTM_DEFINE_CELL_FUSED(bfloat16, lltm_bfloat16)
