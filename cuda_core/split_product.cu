// c = a b of float, at float's accuracy, on tensor cores: for large sizes, where it takes little
// more than half of the time that multiply-adds take. A block has a tile of c, of all terms or of a
// part.
#include <cuda_runtime.h>

#include "device.cuh"
#include "lltm.h"
#include "lltm_matrix.h"
#include "split_product.cuh"

namespace lltm {
namespace {

// Of a and of b. Two pairs are read while two are brought.
typedef uint4 Panels[2][2 * kHalfPanel];
const int kPanels = 4;
const int kShared = kPanels * static_cast<int>(sizeof(Panels));
const int kSumThreads = 256;
// A part has its tiles' beginnings and ends, which take as long as so many panels, and is added to
// the others. What that costs is counted in panels, too.
const int64_t kPanelsOfTile = 12;
const int64_t kSumsOfPanel = 300000;
const int64_t kMostParts = 64;
const int64_t kMostSums = 1 << 24;

template <bool kAlong>
__device__ __forceinline__ void multiply_panels(SplitTile& tile, Panels* panels,
                                                const SplitFactor& factor, int64_t line,
                                                int64_t begin, int64_t end, bool is_a) {
  SplitBringer<kAlong> bringer(factor, line, begin, end, is_a);
  const int which = is_a ? 0 : 1;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    bringer.ask();
    bringer.put(panels[i][which], 0);
    bringer.put(panels[i][which], 1);
  }
  bringer.ask();
  meet();
  int now = 0;
  for (int64_t k = begin; k < end; k += kSplitDepth) {
    tile.multiply(panels[now][0], panels[now][1], bringer, panels[now ^ 2][which]);
    now = (now + 1) % kPanels;
    if (now % 2 == 0) meet();
  }
}

template <bool kAlongA, bool kAlongB>
__global__ void __launch_bounds__(kSplitThreads, 1) product_kernel(const SplitArguments p) {
#ifdef LLTM_TENSOR_CORES
  extern __shared__ Panels panels[];
  const int64_t beside = (p.b.lines + kSplitLines - 1) / kSplitLines;
  const int64_t row = blockIdx.x / beside * kSplitLines;
  const int64_t column = blockIdx.x % beside * kSplitLines;
  const int64_t begin = blockIdx.y * p.terms_of_part;
  const int64_t end = min(begin + p.terms_of_part, p.terms);

  SplitTile tile;
  const bool is_a = threadIdx.x < kSplitThreads / 2;
  if (kAlongA == kAlongB) {
    multiply_panels<kAlongA>(tile, panels, is_a ? p.a : p.b, is_a ? row : column, begin, end, is_a);
  } else if (is_a) {
    multiply_panels<kAlongA>(tile, panels, p.a, row, begin, end, true);
  } else {
    multiply_panels<kAlongB>(tile, panels, p.b, column, begin, end, false);
  }

  float of_rows[SplitTile::kPlaces];
  float of_columns[SplitTile::kPlaces];
#pragma unroll
  for (int i = 0; i < SplitTile::kPlaces; ++i) {
    of_rows[i] = back_of_line(p.a, row + SplitTile::row(i));
    of_columns[i] = back_of_line(p.b, column + SplitTile::column(i));
  }
  float* const c = p.c + blockIdx.y * p.a.lines * p.c_step;
  const auto put = [&](int i, int j, float sum) {
    float* const to = c + (row + SplitTile::row(i)) * p.c_step + column + SplitTile::column(j);
    *to = p.adds ? *to + sum : sum;
  };
  uint64_t are_nan = 0;
  tile.give([&](int i, int j, float sum) {
    if (row + SplitTile::row(i) >= p.a.lines || column + SplitTile::column(j) >= p.b.lines) return;
    sum = scaled_back(sum, of_rows[i], of_columns[j]);
    if (sum == sum) {
      put(i, j, sum);
    } else {
      are_nan |= 1ull << (i * SplitTile::kPlaces + j);
    }
  });
  // Maybe of an infinity, whose two halves make a NaN.
  for (; are_nan; are_nan &= are_nan - 1) {
    const int bit = __ffsll(are_nan) - 1;
    const int i = bit / SplitTile::kPlaces;
    const int j = bit % SplitTile::kPlaces;
    put(i, j, plain_sum(p, row + SplitTile::row(i), column + SplitTile::column(j), begin, end));
  }
#endif
}

// The parts [parts, M, N] added up in turn.
template <bool kAdds>
__global__ void __launch_bounds__(kSumThreads)
    sum_kernel(const float* parts, int64_t count, int64_t rows, int64_t columns, float* c,
               int64_t c_step) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x;
  if (column >= columns) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    float* const to = c + row * c_step + column;
    float sum = 0.0f;
    for (int64_t i = 0; i < count; ++i) sum += parts[(i * rows + row) * columns + column];
    *to = kAdds ? *to + sum : sum;
  }
}

// How many parts the terms are shared out to: what fills the GPU's last round of tiles, too.
int64_t parts_of(int64_t rows, int64_t inner, int64_t columns) {
  const int64_t tiles = rounded_up(rows, kSplitLines) * rounded_up(columns, kSplitLines);
  const int64_t panels = rounded_up(inner, kSplitDepth);
  const int64_t processors = device_attribute(cudaDevAttrMultiProcessorCount);
  const int64_t at_once = processors > 0 ? processors : 1;
  int64_t best = 1;
  int64_t least = INT64_MAX;
  for (int64_t parts = 1; parts <= kMostParts && parts <= panels; ++parts) {
    const bool adds_up = parts > 1;
    if (adds_up && parts > kMostSums / (rows * columns)) break;
    const int64_t cost =
        rounded_up(tiles * parts, at_once) * (rounded_up(panels, parts) + kPanelsOfTile) +
        (adds_up ? kPanelsOfTile + parts * rows * columns / kSumsOfPanel : 0);
    if (cost < least) {
      least = cost;
      best = parts;
    }
  }
  return best;
}

bool fits_grid(int64_t rows, int64_t columns) {
  return rows <= INT32_MAX && columns <= INT32_MAX &&
         rounded_up(rows, kSplitLines) * rounded_up(columns, kSplitLines) <= INT32_MAX;
}

bool is_in_fours(const float* data) {
  return reinterpret_cast<uintptr_t>(data) % (kFour * sizeof(float)) == 0;
}

// Which of its lines' and terms' values lie side by side, and whether they do so in aligned fours.
int32_t check_layout(const MatrixProduct<float>& m, bool along_a, bool along_b) {
  const PackedProduct<float>& p = m.product;
  if (!along_a && p.row_step != 1) return -6;
  if (!along_b && m.b.column_step != 1) return -9;
  if (!along_a && p.rows % kFour != 0) return -1;
  if (along_a && p.inner % kFour != 0) return -2;
  if (!along_b && p.columns % kFour != 0) return -3;
  if (!is_in_fours(p.a)) return -4;
  if ((along_a ? p.row_step : p.column_step) % kFour != 0) return along_a ? -5 : -6;
  if (!is_in_fours(m.b.b)) return -7;
  if ((along_b ? m.b.column_step : m.b.row_step) % kFour != 0) return along_b ? -9 : -8;
  return 0;
}

int32_t launch(const MatrixProduct<float>& m, float* workspace, cudaStream_t stream) {
  const int32_t status = check(m);
  const PackedProduct<float>& p = m.product;
  if (status || p.rows == 0 || p.columns == 0) return status;
  if (!workspace || !has_hopper_kernels()) return -13;
  if (!fits_grid(p.rows, p.columns)) return p.rows > p.columns ? -1 : -3;
  const bool along_a = p.column_step == 1;
  const bool along_b = along_a && m.b.row_step == 1;
  const int32_t layout = check_layout(m, along_a, along_b);
  if (layout) return layout;

  uint32_t* const largest = reinterpret_cast<uint32_t*>(workspace);
  const int64_t lines = p.rows + p.columns;
  SplitArguments s = {{p.a, p.row_step, p.column_step, p.rows, largest},
                      {m.b.b, m.b.column_step, m.b.row_step, p.columns, largest + p.rows},
                      p.inner,
                      p.inner,
                      p.c,
                      p.c_row_step,
                      p.adds != 0};
  int32_t failure = status_of(cudaMemsetAsync(largest, 0, lines * sizeof(uint32_t), stream));
  if (failure) return failure;
  failure = find_largest(s.a, p.inner, along_a, largest, stream);
  if (failure) return failure;
  failure = find_largest(s.b, p.inner, along_b, largest + p.rows, stream);
  if (failure) return failure;

  const int64_t parts = parts_of(p.rows, p.inner, p.columns);
  s.terms_of_part = rounded_up(rounded_up(p.inner, parts), kSplitDepth) * kSplitDepth;
  if (parts > 1) {
    s.c = workspace + lines;
    s.c_step = p.columns;
    s.adds = false;
  }
  const int64_t tiles = rounded_up(p.rows, kSplitLines) * rounded_up(p.columns, kSplitLines);
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(parts));
  void (*const kernel)(SplitArguments) = along_b   ? &product_kernel<true, true>
                                         : along_a ? &product_kernel<true, false>
                                                   : &product_kernel<false, false>;
  failure = status_of(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  if (failure) return failure;
  kernel<<<grid, kSplitThreads, kShared, stream>>>(s);
  failure = static_cast<int32_t>(cudaGetLastError());
  if (failure || parts == 1) return failure;
  const dim3 blocks(static_cast<unsigned>(rounded_up(p.columns, kSumThreads)),
                    static_cast<unsigned>(p.rows < 65535 ? p.rows : 65535));
  const auto sum = p.adds ? &sum_kernel<true> : &sum_kernel<false>;
  sum<<<blocks, kSumThreads, 0, stream>>>(s.c, parts, p.rows, p.columns, p.c, p.c_row_step);
  return static_cast<int32_t>(cudaGetLastError());
}

}  // namespace
}  // namespace lltm

int64_t lltm_multiply_workspace_cuda_float(int64_t rows, int64_t inner, int64_t columns) noexcept {
  if (rows <= 0 || inner < 0 || columns <= 0 || !lltm::fits_grid(rows, columns)) return 0;
  if (!lltm::has_hopper_kernels()) return 0;
  const int64_t parts = lltm::parts_of(rows, inner, columns);
  return rows + columns + (parts > 1 ? parts * rows * columns : 0);
}

int32_t lltm_multiply_cuda_float(int64_t rows, int64_t inner, int64_t columns, const float* a,
                                 int64_t row_step, int64_t column_step, const float* b,
                                 int64_t b_row_step, int64_t b_column_step, float* c,
                                 int64_t c_row_step, int32_t adds, float* workspace,
                                 CUstream_st* stream) noexcept {
  const lltm::MatrixProduct<float> arguments = {
      {rows, inner, columns, row_step, column_step, c_row_step, adds, a, nullptr, c},
      {inner, columns, b_row_step, b_column_step, b, nullptr}};
  return lltm::launch(arguments, workspace, stream);
}
