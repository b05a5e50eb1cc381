// The product of all rows of a sequence with the weights of its inputs, or of the gradients of its
// gates with them: for small sizes, where a library's host code takes longer than the product. A
// block has a tile of it.
#include <cuda_runtime.h>

#include "dependent_launch.cuh"
#include "lltm.h"
#include "lltm_products.h"
#include "product_tiles.cuh"

namespace lltm {
namespace {

template <typename Tile, bool kTransposed, bool kAligned, typename S>
__global__ void __launch_bounds__(kThreads, sizeof(ComputeType<S>) == 8 ? 2 : 4)
    kernel(const SequenceProduct<S> a, int64_t tiles_beside) {
  typedef ComputeType<S> T;
  __shared__ Panel<T> left[2];
  __shared__ Panel<T> right[2];
  await_earlier_kernels();
  const int64_t row = blockIdx.x / tiles_beside * kTile;
  const int64_t column = blockIdx.x % tiles_beside * kTile;

  Tile tile;
  typedef MatrixLines<S> Lines;
  Bringer<true, kAligned, S, Lines> factor(Lines{a.a, a.inner}, row, a.rows);
  Bringer<kTransposed, kAligned, S, Lines> weights(Lines{a.weights, a.weights_stride}, column,
                                                   a.columns);
  factor.ask(0, a.inner);
  weights.ask(0, a.inner);
  int buffer = 0;
  for (int64_t k = 0; k < a.inner; k += Panel<T>::kDepth, buffer ^= 1) {
    factor.put(left[buffer], &Tile::operand);
    weights.put(right[buffer], &Tile::operand);
    __syncthreads();
    factor.ask(k + Panel<T>::kDepth, a.inner);
    weights.ask(k + Panel<T>::kDepth, a.inner);
    tile.multiply(left[buffer], right[buffer]);
  }
  tile.give([&](int below, int beside, const T(&values)[kGroup]) {
    if (row + below >= a.rows) return;
    store_group<kAligned>(values, a.c + (row + below) * a.columns, column + beside, a.columns);
  });
}

template <typename Tile, bool kTransposed, typename S>
int32_t launch(const SequenceProduct<S>& a, cudaStream_t stream) {
  const int64_t tiles_beside = (a.columns + kTile - 1) / kTile;
  const int64_t tiles_below = (a.rows + kTile - 1) / kTile;
  if (tiles_below > INT32_MAX / tiles_beside) return -1;
  const unsigned grid = static_cast<unsigned>(tiles_below * tiles_beside);
  const bool aligned = a.inner % kGroup == 0 && a.columns % kGroup == 0 &&
                       a.weights_stride % kGroup == 0 && is_aligned(a.a) && is_aligned(a.weights) &&
                       is_aligned(a.c);
  return launch_dependent(
      aligned ? &kernel<Tile, kTransposed, true, S> : &kernel<Tile, kTransposed, false, S>, grid,
      kThreads, stream, a, tiles_beside);
}

template <typename Tile, typename S>
int32_t launch(const SequenceProduct<S>& a, bool transposed, cudaStream_t stream) {
  return transposed ? launch<Tile, true>(a, stream) : launch<Tile, false>(a, stream);
}

template <typename S>
int32_t launch(const SequenceProduct<S>& a, bool transposed, bool tf32, cudaStream_t stream) {
  const int32_t status = check(a, transposed);
  if (status || a.rows == 0 || a.columns == 0) return status;
  if (takes_fast_tile<S>(tf32)) return launch<typename Tiles<S>::Fast>(a, transposed, stream);
  return launch<typename Tiles<S>::Full>(a, transposed, stream);
}

}  // namespace
}  // namespace lltm

#define LLTM_DEFINE_SEQUENCE_PRODUCT(name, type)                                                   \
  int32_t lltm_sequence_product_cuda_##name(int64_t rows, int64_t inner, int64_t columns,          \
                                            const type* a, const type* weights,                    \
                                            int64_t weights_stride, int32_t transposed,            \
                                            int32_t tf32, type* c, CUstream_st* stream) noexcept { \
    const lltm::SequenceProduct<type> arguments = {rows,    inner,          columns, a,            \
                                                   weights, weights_stride, c};                    \
    return lltm::launch(arguments, transposed != 0, tf32 != 0, stream);                            \
  }

LLTM_DEFINE_SEQUENCE_PRODUCT(float, float)
LLTM_DEFINE_SEQUENCE_PRODUCT(double, double)
LLTM_DEFINE_SEQUENCE_PRODUCT(half, lltm_half)
LLTM_DEFINE_SEQUENCE_PRODUCT(bfloat16, lltm_bfloat16)
