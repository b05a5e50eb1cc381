// Copies of small CPU matrices: side by side, apart, transposed. ATen does them too, but a call of
// at::cat costs as much as the product of a small cell, and a transposing copy_ moves one element
// in two nanoseconds.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace lltm_bindings {

// What a raw pointer may be taken of: rows one after another, and no negation left to do. An
// undefined tensor stays so.
at::Tensor dense(const at::Tensor& tensor);

// Rows [first, first + rows): the tensor itself where it has no others, for a view takes time too.
inline at::Tensor rows_from(const at::Tensor& tensor, int64_t first, int64_t rows) {
  return rows == tensor.size(0) ? tensor : tensor.narrow(0, first, rows);
}

// (left, right), both of the same number of rows
at::Tensor join_columns(const at::Tensor& left, const at::Tensor& right);

// (left, right)^T
at::Tensor join_columns_transposed(const at::Tensor& left, const at::Tensor& right);

// The first `left` columns of a dense matrix, and the others.
std::tuple<at::Tensor, at::Tensor> split_columns(const at::Tensor& both, int64_t left);

// A dense copy of a dense matrix's transpose.
at::Tensor transpose(const at::Tensor& matrix);

}  // namespace lltm_bindings
