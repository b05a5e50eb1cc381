#include "layout.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace lltm_bindings {
namespace {

// Elements below which a second thread costs more than it saves.
const int64_t kElementsPerThread = 65536;

// A block of a dense matrix, as elements without a type: whatever has the right size.
template <typename Word>
struct Block {
  Word* start;
  int64_t stride;  // from row to row

  Block(const at::Tensor& matrix, int64_t row, int64_t column)
      : start(static_cast<Word*>(matrix.data_ptr()) + row * matrix.size(1) + column),
        stride(matrix.size(1)) {}
};

struct CopyRows {
  template <typename Word>
  void operator()(int64_t rows, int64_t columns, Block<Word> from, Block<Word> to) const {
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(from.start + r * from.stride, columns, to.start + r * to.stride);
    }
  }
};

// `rows` and `columns` are those of `from`. By way of a tile that fits in registers and first-level
// cache, memory is read and written in whole cache lines, whatever power of two the strides are.
struct CopyTransposed {
  template <typename Word>
  void operator()(int64_t rows, int64_t columns, Block<Word> from, Block<Word> to) const {
    constexpr int64_t kTile = 64 / sizeof(Word);
    const int64_t tile_rows = (rows + kTile - 1) / kTile;
    const int64_t grain = kElementsPerThread / (kTile * columns + 1) + 1;
    at::parallel_for(0, tile_rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * kTile; r < (std::min)(end * kTile, rows); r += kTile) {
        for (int64_t c = 0; c < columns; c += kTile) {
          copy_tile<kTile>((std::min)(kTile, rows - r), (std::min)(kTile, columns - c),
                           from.start + r * from.stride + c, from.stride,
                           to.start + c * to.stride + r, to.stride);
        }
      }
    });
  }

 private:
  template <int64_t kTile, typename Word>
  static void copy_tile(int64_t rows, int64_t columns, const Word* from, int64_t from_stride,
                        Word* to, int64_t to_stride) {
    Word tile[kTile][kTile];
    if (rows == kTile && columns == kTile) rows = columns = kTile;  // loops of a known length
    for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_stride, columns, tile[r]);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = tile[r][c];
    }
  }
};

// Copies `source`, a whole matrix unless `columns` and `column` choose some of its columns, to a
// place in `target`.
template <typename Copy>
void copy(const Copy& copy, const at::Tensor& source, int64_t column, int64_t columns,
          const at::Tensor& target, int64_t target_row, int64_t target_column) {
  const auto run = [&](auto word) {
    typedef decltype(word) Word;
    copy(source.size(0), columns, Block<Word>(source, 0, column),
         Block<Word>(target, target_row, target_column));
  };
  switch (source.element_size()) {
    case 2:
      return run(uint16_t());
    case 4:
      return run(uint32_t());
    default:
      return run(uint64_t());
  }
}

}  // namespace

at::Tensor dense(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.is_neg() ? tensor.resolve_neg().contiguous() : tensor.contiguous();
}

at::Tensor join_columns(const at::Tensor& left, const at::Tensor& right) {
  at::Tensor both = at::empty({left.size(0), left.size(1) + right.size(1)}, left.options());
  copy(CopyRows(), dense(left), 0, left.size(1), both, 0, 0);
  copy(CopyRows(), dense(right), 0, right.size(1), both, 0, left.size(1));
  return both;
}

at::Tensor join_columns_transposed(const at::Tensor& left, const at::Tensor& right) {
  at::Tensor both = at::empty({left.size(1) + right.size(1), left.size(0)}, left.options());
  copy(CopyTransposed(), dense(left), 0, left.size(1), both, 0, 0);
  copy(CopyTransposed(), dense(right), 0, right.size(1), both, left.size(1), 0);
  return both;
}

std::tuple<at::Tensor, at::Tensor> split_columns(const at::Tensor& both, int64_t left) {
  const int64_t right = both.size(1) - left;
  at::Tensor left_part = at::empty({both.size(0), left}, both.options());
  at::Tensor right_part = at::empty({both.size(0), right}, both.options());
  copy(CopyRows(), both, 0, left, left_part, 0, 0);
  copy(CopyRows(), both, left, right, right_part, 0, 0);
  return std::make_tuple(left_part, right_part);
}

at::Tensor transpose(const at::Tensor& matrix) {
  at::Tensor result = at::empty({matrix.size(1), matrix.size(0)}, matrix.options());
  copy(CopyTransposed(), matrix, 0, matrix.size(1), result, 0, 0);
  return result;
}

}  // namespace lltm_bindings
