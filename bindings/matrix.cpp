#include "matrix.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <string>

#include "checks.h"
#include "cublas.h"
#include "dispatch.h"

namespace lltm_bindings {
namespace {

// Multiplications below which a second thread costs more than it saves.
const int64_t kWorkPerThread = 1 << 20;
// Values of products by parts that are kept at once, 64 MiB, and what a part's terms are rounded up
// to, for vectors take as many.
const int64_t kPartsAtOnce = 1 << 24;
const int64_t kAligned = 8;
// Shares of rows begin at whole tiles of the core.
const int64_t kTileRows = 8;

// From so many rows, columns, terms and multiplications on tensor cores are faster than cuBLAS, as
// measured on an H200; they read aligned fours.
const int64_t kTensorTile = 128;
const double kWorkOfTensorCores = 3e9;
const int64_t kFours = 4;

// Of float and double alone.
template <typename T>
struct Matrices;

#define LLTM_DEFINE_MATRICES(type)                                                               \
  template <>                                                                                    \
  struct Matrices<type> {                                                                        \
    static constexpr decltype(&lltm_multiply_cpu_##type) multiply = &lltm_multiply_cpu_##type;   \
    static int64_t panel_columns() { return lltm_panel_columns_cpu_##type(); }                   \
    static constexpr decltype(&lltm_pack_matrix_cpu_##type) pack = &lltm_pack_matrix_cpu_##type; \
    static constexpr decltype(&lltm_multiply_packed_cpu_##type) multiply_packed =                \
        &lltm_multiply_packed_cpu_##type;                                                        \
  };

LLTM_DEFINE_MATRICES(float)
LLTM_DEFINE_MATRICES(double)

#undef LLTM_DEFINE_MATRICES

template <typename Work>
void with_matrices(const at::Tensor& like, const Work& work) {
  like.scalar_type() == at::kFloat ? work(float()) : work(double());
}

// Shares `count` parts of so much work each out to torch's threads.
template <typename Work>
void in_parallel(int64_t count, int64_t work_of_one, const Work& work) {
  const int64_t grain = kWorkPerThread / (std::max)(work_of_one, int64_t(1)) + 1;
  at::parallel_for(0, count, grain, work);
}

// Calls work(row, rows, column, columns), as rows or panels are shared out, whatever there is more
// of.
template <typename Work>
void share_out(const at::Tensor& out, int64_t inner, int64_t panel, const Work& work) {
  const int64_t M = out.size(0);
  const int64_t N = out.size(1);
  const int64_t tiles = (M + kTileRows - 1) / kTileRows;
  const int64_t panels = (N + panel - 1) / panel;
  if (tiles > panels) {
    in_parallel(tiles, kTileRows * inner * N, [&](int64_t begin, int64_t end) {
      const int64_t row = begin * kTileRows;
      work(row, (std::min)(end * kTileRows, M) - row, 0, N);
    });
  } else {
    in_parallel(panels, M * inner * panel, [&](int64_t begin, int64_t end) {
      const int64_t column = begin * panel;
      work(0, M, column, (std::min)(end * panel, N) - column);
    });
  }
}

// Whether its rows, or its columns, lie dense and in aligned fours: the other stride is a multiple.
bool lies_in_fours(const at::Tensor& matrix, int64_t dense) {
  return matrix.stride(dense) == 1 && matrix.stride(1 - dense) % kFours == 0 &&
         matrix.size(dense) % kFours == 0 &&
         reinterpret_cast<uintptr_t>(matrix.data_ptr<float>()) % (kFours * sizeof(float)) == 0;
}

}  // namespace

bool outruns_aten(const at::Tensor& like) {
  static const std::string wanted = chosen("LLTM_CPU_PRODUCTS", "core", "aten");
  static const bool has_wider_vectors =
      at::hasMKL() && lltm_processor() == LLTM_PROCESSOR_AMD_ZEN5 && lltm_vector_bytes() == 64;
  return (wanted.empty() ? has_wider_vectors : wanted == "core") && like.device().is_cpu() &&
         (like.scalar_type() == at::kFloat || like.scalar_type() == at::kDouble);
}

bool rounds_sums(const at::Tensor& like) {
  if (like.element_size() != 2 || !like.device().is_cpu()) return false;
  const auto is_rounded = [](at::ScalarType type) {
    const int64_t terms = 4096;
    for (int64_t rows = 1; rows <= 2; ++rows) {  // other kernels have a single one
      const at::Tensor ones = at::ones({rows, terms}, type);
      if (at::mm(ones, ones.t())[0][0].item<double>() != static_cast<double>(terms)) return true;
    }
    return false;
  };
  static const bool of_half = is_rounded(at::kHalf);
  static const bool of_bfloat16 = is_rounded(at::kBFloat16);
  return like.scalar_type() == at::kHalf ? of_half : of_bfloat16;
}

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
  if (rounds_sums(out)) {
    const at::Tensor product = at::mm(a.to(at::kFloat), b.to(at::kFloat));
    out.copy_(adds ? product.add(out) : product);
    return;
  }
  if (!outruns_aten(out) || out.size(0) < kRowsWorthPacking) {
    at::Tensor result = out;
    adds ? at::addmm_out(result, result, a, b) : at::mm_out(result, a, b);
    return;
  }
  const at::Tensor left = a.resolve_neg();
  const at::Tensor right = b.resolve_neg();
  with_matrices(out, [&](auto type) {
    typedef Matrices<decltype(type)> M;
    const auto* const a_data = left.data_ptr<decltype(type)>();
    const auto* const b_data = right.data_ptr<decltype(type)>();
    auto* const c = out.data_ptr<decltype(type)>();
    share_out(out, left.size(1), M::panel_columns(),
              [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
                check_status(
                    M::multiply(rows, left.size(1), columns, a_data + row * left.stride(0),
                                left.stride(0), left.stride(1), b_data + column * right.stride(1),
                                right.stride(0), right.stride(1), c + row * out.stride(0) + column,
                                out.stride(0), adds),
                    "multiply");
              });
  });
}

bool is_worth_tensor_cores(const at::Tensor& out, int64_t terms) {
  if (!kWithCuda || !out.is_cuda() || out.scalar_type() != at::kFloat) return false;
  const int64_t M = out.size(0);
  const int64_t N = out.size(1);
  return (std::min)((std::min)(M, N), terms) >= kTensorTile &&
         static_cast<double>(M) * N * terms >= kWorkOfTensorCores && !allows_tf32(out);
}

bool suits_tensor_cores(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (!is_worth_tensor_cores(out, a.size(1))) return false;
  const bool rows_are_dense = lies_in_fours(a, 1);
  if (!rows_are_dense && !lies_in_fours(a, 0)) return false;
  if (!lies_in_fours(b, 1) && !(rows_are_dense && lies_in_fours(b, 0))) return false;
  const DeviceScope scope(out);
  return multiply_workspace(out.size(0), a.size(1), out.size(1)) > 0;
}

bool multiply_by_tensor_cores(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
                              bool adds) {
  if (!suits_tensor_cores(out, a, b)) return false;
  const int64_t M = out.size(0);
  const int64_t N = out.size(1);
  const int64_t K = a.size(1);
  const DeviceScope scope(out);
  const at::Tensor workspace = at::empty({multiply_workspace(M, K, N)}, out.options());
  const decltype(&lltm_multiply_cuda_float) product = LLTM_CUDA_CORE(multiply, float);
  check_status(product(M, K, N, a.data_ptr<float>(), a.stride(0), a.stride(1), b.data_ptr<float>(),
                       b.stride(0), b.stride(1), out.data_ptr<float>(), out.stride(0), adds,
                       workspace.data_ptr<float>(), scope.stream),
               "multiply");
  return true;
}

void multiply_in_parts(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds,
                       int64_t longest) {
  if (multiply_by_tensor_cores(out, a, b, adds)) return;
  const bool errs = out.is_cuda() && out.scalar_type() == at::kFloat && !allows_tf32(out);
  const int64_t terms = a.size(1);
  if (!errs || terms <= longest) return multiply(out, a, b, adds);
  const int64_t parts = (terms + longest - 1) / longest;
  const int64_t even = (terms + parts - 1) / parts;
  const int64_t part = (even + kAligned - 1) / kAligned * kAligned;
  const int64_t most = (std::max)(kPartsAtOnce / (std::max)(out.numel(), int64_t(1)), int64_t(1));
  for (int64_t first = 0; first < terms; adds = true) {
    const int64_t whole = (std::min)((terms - first) / part, most);
    const int64_t count = whole > 1 ? whole * part : (std::min)(part, terms - first);
    const at::Tensor left = a.narrow(1, first, count);
    const at::Tensor right = b.narrow(0, first, count);
    first += count;
    if (whole <= 1) {
      multiply(out, left, right, adds);
      continue;
    }
    const at::Tensor sum = at::bmm(left.view({left.size(0), whole, part}).transpose(0, 1),
                                   right.view({whole, part, right.size(1)}))
                               .sum(0);
    adds ? out.add_(sum) : out.copy_(sum);
  }
}

PackedFactor::PackedFactor(const at::Tensor& b, int64_t rows) {
  if (!outruns_aten(b) || rows < kRowsWorthPacking) return;
  const int64_t K = b.size(0);
  const int64_t N = b.size(1);
  const at::Tensor from = b.resolve_neg();
  with_matrices(b, [&](auto type) {
    typedef Matrices<decltype(type)> M;
    const int64_t panel = M::panel_columns();
    packed_ = at::empty({(N + panel - 1) / panel, K, panel}, b.options());
    check_status(M::pack(K, N, from.data_ptr<decltype(type)>(), from.stride(0), from.stride(1),
                         packed_.data_ptr<decltype(type)>()),
                 "pack_matrix");
  });
}

void PackedFactor::multiply(const at::Tensor& out, const at::Tensor& a, bool adds) const {
  with_matrices(out, [&](auto type) {
    typedef Matrices<decltype(type)> M;
    const int64_t K = a.size(1);
    const auto* const a_data = a.data_ptr<decltype(type)>();
    const auto* const packed = packed_.data_ptr<decltype(type)>();
    auto* const c = out.data_ptr<decltype(type)>();
    share_out(out, K, M::panel_columns(),
              [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
                check_status(
                    M::multiply_packed(rows, K, columns, a_data + row * a.stride(0), a.stride(0),
                                       a.stride(1), packed + column * K,
                                       c + row * out.stride(0) + column, out.stride(0), adds),
                    "multiply_packed");
              });
  });
}

}  // namespace lltm_bindings
