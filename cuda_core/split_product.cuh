// The tile of a product of float by tensor cores at float's accuracy: a value is two halves, as
// SplitFormat says, once its line, a row of a or a column of b, is scaled: split_lines.cuh.
#ifndef LLTM_SPLIT_PRODUCT_CUH_
#define LLTM_SPLIT_PRODUCT_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "split_lines.cuh"
#include "tensor_core.cuh"

namespace lltm {
namespace {

const int kSplitThreads = 256;
const int kSplitLines = 128;  // rows and columns of a tile
const int kSplitDepth = 16;   // terms of a panel
const int kHalfPanel = kSplitLines * kSplitDepth / (2 * kFour);

struct SplitArguments {
  SplitFactor a, b;
  int64_t terms, terms_of_part;  // a multiple of kSplitDepth
  float* c;                      // [parts, M, N]
  int64_t c_step;                // of rows
  bool adds;
};

// Of a panel: units of 16 bytes. Those of b are four terms of a line, both high pairs and both low
// ones; those of a the high pairs of two neighbouring lines in turn, half a panel later the low
// ones: each as an instruction takes them from neighbouring registers. Places are mixed so that
// neither eight threads that bring nor eight that read meet in a bank.
__device__ __forceinline__ int split_place(int line, int quad, int lines_of_thread) {
  const int thread = line / lines_of_thread;
  return (line * kFour + quad) ^ ((thread & 1) << 2 | (thread >> 1 & 3));
}
__device__ __forceinline__ int place_of_pair(int pair, int quad) {
  return split_place(pair, quad, kFour / 2);
}
__device__ __forceinline__ int place_of_line(int line, int quad) {
  return split_place(line, quad, kFour);
}

// Four neighbouring values, or zeros.
__device__ __forceinline__ void load_four(float& x, float& y, float& z, float& w, const float* from,
                                          bool inside) {
  x = y = z = w = 0.0f;
  asm volatile(
      "{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4]; }"
      : "+f"(x), "+f"(y), "+f"(z), "+f"(w)
      : "l"(from), "r"(static_cast<uint32_t>(inside)));
}

// What a thread brings of a panel: four terms of four lines, in registers until there is room. A
// half of the threads brings a, the other b. Terms lie side by side if kAlong, else lines; four of
// them are inside or outside together.
template <bool kAlong>
class SplitBringer {
 public:
  __device__ __forceinline__ SplitBringer(const SplitFactor& factor, int64_t first_line,
                                          int64_t begin, int64_t end, bool is_a)
      : step(kAlong ? factor.line_step : factor.term_step),
        panel_step(kSplitDepth * factor.term_step),
        left(end - begin),
        is_a(is_a) {
    const int thread = threadIdx.x % (kSplitThreads / 2);
    const int line = (kAlong ? thread / kFour : thread % 32) * kFour;
    quad = kAlong ? thread % kFour : thread / 32;
    left -= kFour * quad;
    lines = factor.lines - first_line - line;
    from = factor.data + (first_line + line) * factor.line_step +
           (begin + kFour * quad) * factor.term_step;
#pragma unroll
    for (int i = 0; i < kFour; ++i) {
      scales[i] = i < lines ? scale_of(factor.largest[first_line + line + i]) : 0.0f;
    }
    place = is_a ? place_of_pair(line / 2, quad) : place_of_line(line, quad);
    next_place = is_a ? place_of_pair(line / 2 + 1, quad) : place_of_line(line + 2, quad);
  }

  // Of the next panel.
  __device__ __forceinline__ void ask() {
#pragma unroll
    for (int i = 0; i < kFour; ++i) {
      const bool inside = kAlong ? i < lines && left > 0 : i < left && lines > 0;
      load_four(at(i, 0), at(i, 1), at(i, 2), at(i, 3), from + i * step, inside);
    }
    from += panel_step;
    left -= kSplitDepth;
  }

  // Two of the lines.
  __device__ __forceinline__ void put(uint4* panel, int half) const {
    const uint4 x = unit(2 * half);
    const uint4 y = unit(2 * half + 1);
    const int to = half ? next_place : place;
    panel[to] = is_a ? make_uint4(x.x, y.x, x.y, y.y) : x;
    // The place of an odd line differs from that of the even one before it in this bit.
    panel[is_a ? to + kHalfPanel : to ^ kFour] = is_a ? make_uint4(x.z, y.z, x.w, y.w) : y;
  }

 private:
  __device__ __forceinline__ float& at(int i, int j) { return kAlong ? raw[i][j] : raw[j][i]; }
  __device__ __forceinline__ uint4 unit(int i) const {
    const uint2 x = SplitFormat::sent(raw[i][0] * scales[i], raw[i][1] * scales[i]);
    const uint2 y = SplitFormat::sent(raw[i][2] * scales[i], raw[i][3] * scales[i]);
    return make_uint4(x.x, y.x, x.y, y.y);
  }

  const float* from;
  const int64_t step, panel_step;
  int64_t left, lines;  // terms and lines from the thread's first on
  const bool is_a;
  int quad, place, next_place;
  float scales[kFour];
  float raw[kFour][kFour];  // of lines, terms
};

// A warp has 64 rows of 32 columns, a lane eight of each: lane 4g + q rows 2g and 2g + 1 of every
// 16, columns 2q and 2q + 1 of every eight.
class SplitTile {
  static const int kBelow = 4;
  static const int kBeside = 4;

 public:
  static const int kPlaces = 8;  // rows, or columns, of a lane

  __device__ __forceinline__ SplitTile() {
#pragma unroll
    for (int m = 0; m < kBelow; ++m) {
#pragma unroll
      for (int n = 0; n < kBeside; ++n) sums[m][n].clear();
    }
  }

  // a b of a panel. In between, while the tensor cores are busy, the next one is brought.
  template <typename Bringer>
  __device__ __forceinline__ void multiply(const uint4* a, const uint4* b, Bringer& bringer,
                                           uint4* next) {
    uint4 high[kBelow], low[kBelow], columns[kBeside];
#pragma unroll
    for (int n = 0; n < kBeside; ++n) {
      columns[n] = b[place_of_line(beside() + 8 * n + lane() / 4, lane() % 4)];
    }
#pragma unroll
    for (int m = 0; m < kBelow; ++m) {
      const int place = place_of_pair(below() / 2 + 8 * m + lane() / 4, lane() % 4);
      high[m] = a[place];
      low[m] = a[place + kHalfPanel];
    }
#pragma unroll
    for (int m = 0; m < kBelow; ++m) {
      if (m == 1 || m == 2) bringer.put(next, m - 1);
      if (m == 2) bringer.ask();
#pragma unroll
      for (int n = 0; n < kBeside; ++n) {
        SplitFormat::multiply(sums[m][n], {high[m], low[m]}, columns[n]);
      }
    }
  }

  __device__ __forceinline__ static int row(int i) {
    return below() + i / 2 * 16 + lane() / 4 * 2 + i % 2;
  }
  __device__ __forceinline__ static int column(int j) {
    return beside() + j / 2 * 8 + lane() % 4 * 2 + j % 2;
  }
  // give(i, j, sum): of row(i) and column(j)
  template <typename Give>
  __device__ __forceinline__ void give(const Give& give) const {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
#pragma unroll
      for (int j = 0; j < kPlaces; ++j) {
        give(i, j, SplitFormat::total(sums[i / 2][j / 2], i % 2 * 2 + j % 2));
      }
    }
  }

 private:
  __device__ __forceinline__ static int lane() { return threadIdx.x % 32; }
  __device__ __forceinline__ static int below() { return threadIdx.x / 128 * 64; }
  __device__ __forceinline__ static int beside() { return threadIdx.x / 32 % 4 * 32; }

  Sums<float, false> sums[kBelow][kBeside];
};

// By both kinds of threads, wherever they are: a __syncthreads would have to be the same one.
__device__ __forceinline__ void meet() { asm volatile("bar.sync 0;" ::: "memory"); }

// By multiply-adds. It does not go on when the sum is a NaN.
__device__ __forceinline__ float plain_sum(const SplitArguments& p, int64_t row, int64_t column,
                                           int64_t begin, int64_t end) {
  const float* a = p.a.data + row * p.a.line_step;
  const float* b = p.b.data + column * p.b.line_step;
  float sum = 0.0f;
  for (int64_t k = begin; k < end && sum == sum; ++k) {
    sum = fmaf(a[k * p.a.term_step], b[k * p.b.term_step], sum);
  }
  return sum;
}

}  // namespace
}  // namespace lltm

#endif  // LLTM_SPLIT_PRODUCT_CUH_
