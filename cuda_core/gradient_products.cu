// All gradients of the cell's products with its weights in one launch; for small sizes, where four
// products and a sum of a library's take longer to launch than to run. Some blocks compute a tile
// of d_x each, the others one of d_weights. Sums are added in an order that only the sizes decide:
// the same bits in every run.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "gradient_tiles.cuh"
#include "lltm.h"

namespace lltm {
namespace {

// Where tiles of all gates at once would be fewer, the tiles of d_weights are made smaller: two for
// each processor of a large GPU.
const int64_t kManyTiles = 2 * 132;

struct Tiles {
  int64_t columns;  // tiles beside each other in [old_h, input]
  int64_t d_x;      // tiles of d_x
  int64_t all;
  bool splits;  // the rows of d_weights
};

inline int64_t tiles_of(int64_t count, int64_t size) { return (count + size - 1) / size; }

template <typename S>
Tiles tiles_of(const GradientProducts<S>& a) {
  const int64_t columns = tiles_of(a.state_size + a.input_features, kColumns);
  const int64_t rows = a.d_old_h || a.d_input ? tiles_of(a.batch_size, kRows) : 0;
  const int64_t gates = 3 * a.state_size;
  const bool splits = tiles_of(gates, kGates) * columns < kManyTiles;
  const int64_t d_weights = tiles_of(gates, splits ? kGates / kSplit : kGates) *
                            (a.d_weights ? columns : (a.d_bias ? 1 : 0));
  return {columns, rows * columns, rows * columns + d_weights, splits};
}

template <bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads, 2)
    kernel(const GradientProducts<S> a, const Tiles tiles) {
  __shared__ ComputeType<S> parts[(kSplit - 1) * kGroup * (kGroup + 1) * kThreads / kSplit];
  const int64_t tile = blockIdx.x;
  await_earlier_kernels();
  if (tile < tiles.d_x) {
    d_x_tile<kAligned>(a, tile / tiles.columns * kRows, tile % tiles.columns * kColumns, parts);
    return;
  }
  const int64_t columns = a.d_weights ? tiles.columns : 1;
  const int64_t gate = (tile - tiles.d_x) / columns * kGates;
  const int64_t column = (tile - tiles.d_x) % columns * kColumns;
  if (tiles.splits) {
    d_weights_tile<kAligned, kSplit>(a, gate / kSplit, column, parts);
  } else {
    d_weights_tile<kAligned, 1>(a, gate, column, parts);
  }
}

}  // namespace

template <typename S>
int32_t launch(const GradientProducts<S>& a, cudaStream_t stream) {
  const int32_t status = check(a);
  if (status) return status;
  const Tiles tiles = tiles_of(a);
  if (tiles.all == 0) return 0;
  if (tiles.all > INT32_MAX) return -1;
  const unsigned grid = static_cast<unsigned>(tiles.all);
  const bool aligned = a.state_size % kGroup == 0 && a.input_features % kGroup == 0 &&
                       is_aligned(a.d_gates) && is_aligned(a.input) && is_aligned(a.weights) &&
                       is_aligned(a.old_h) && is_aligned(a.d_weights);
  if (aligned) return launch_dependent(kernel<true>, grid, kThreads, stream, a, tiles);
  return launch_dependent(kernel<false>, grid, kThreads, stream, a, tiles);
}

template int32_t launch(const GradientProducts<float>&, cudaStream_t);
template int32_t launch(const GradientProducts<double>&, cudaStream_t);
template int32_t launch(const GradientProducts<lltm_half>&, cudaStream_t);
template int32_t launch(const GradientProducts<lltm_bfloat16>&, cudaStream_t);

}  // namespace lltm

#define LLTM_DEFINE_GRADIENT_PRODUCTS(name, type)                                                \
  int32_t lltm_gradient_products_cuda_##name(                                                    \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* d_gates,       \
      const type* input, const type* weights, const type* old_h, type* d_input, type* d_weights, \
      type* d_bias, type* d_old_h, CUstream_st* stream) noexcept {                               \
    const lltm::GradientProducts<type> arguments = {                                             \
        batch_size, state_size, input_features, d_gates, input,  weights,                        \
        old_h,      d_input,    d_weights,      d_bias,  d_old_h};                               \
    return lltm::launch(arguments, stream);                                                      \
  }

LLTM_DEFINE_GRADIENT_PRODUCTS(float, float)
LLTM_DEFINE_GRADIENT_PRODUCTS(double, double)
LLTM_DEFINE_GRADIENT_PRODUCTS(half, lltm_half)
LLTM_DEFINE_GRADIENT_PRODUCTS(bfloat16, lltm_bfloat16)
