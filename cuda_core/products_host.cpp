// The C ABI of the host products, and the choice of their instruction set.
#include "products_host.h"

#include "gradients_host_loops.h"
#include "lltm.h"
#include "matrix_host_loops.h"

namespace lltm {

LLTM_DEFINE_HOST_PRODUCTS(host_products_baseline)

static const HostProducts& host_products() {
#ifdef LLTM_HOST_X86_VARIANTS
  const HostIsa isa = host_isa();
  if (isa == kHostAvx512) return host_products_avx512;
  if (isa == kHostAvx2) return host_products_avx2;
#endif
  return host_products_baseline;
}

static void run(const GateProducts<float>& a) { host_products().gates_float(a); }
static void run(const GateProducts<double>& a) { host_products().gates_double(a); }
static void run(const GradientProducts<float>& a) { host_products().gradients_float(a); }
static void run(const GradientProducts<double>& a) { host_products().gradients_double(a); }

static void run(const MatrixPacking<float>& a) { host_products().pack_float(a); }
static void run(const MatrixPacking<double>& a) { host_products().pack_double(a); }
static void run(const PackedProduct<float>& a) { host_products().multiply_packed_float(a); }
static void run(const PackedProduct<double>& a) { host_products().multiply_packed_double(a); }
static void run(const MatrixProduct<float>& a) { host_products().multiply_float(a); }
static void run(const MatrixProduct<double>& a) { host_products().multiply_double(a); }

template <typename Products>
static int32_t run_products(const Products& a) {
  const int32_t status = check(a);
  if (status == 0) run(a);
  return status;
}

}  // namespace lltm

#define LLTM_DEFINE_PRODUCTS_CPU(name, type)                                                     \
  int32_t lltm_gate_products_cpu_##name(                                                         \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* input,         \
      const type* weights, const type* old_h, type* gates) noexcept {                            \
    const lltm::GateProducts<type> arguments = {batch_size, state_size, input_features, input,   \
                                                weights,    old_h,      gates};                  \
    return lltm::run_products(arguments);                                                        \
  }                                                                                              \
  int32_t lltm_gradient_products_cpu_##name(                                                     \
      int64_t batch_size, int64_t state_size, int64_t input_features, const type* d_gates,       \
      const type* input, const type* weights, const type* old_h, type* d_input, type* d_weights, \
      type* d_bias, type* d_old_h, CUstream_st*) noexcept {                                      \
    const lltm::GradientProducts<type> arguments = {                                             \
        batch_size, state_size, input_features, d_gates, input,  weights,                        \
        old_h,      d_input,    d_weights,      d_bias,  d_old_h};                               \
    return lltm::run_products(arguments);                                                        \
  }

LLTM_DEFINE_PRODUCTS_CPU(float, float)
LLTM_DEFINE_PRODUCTS_CPU(double, double)

#define LLTM_DEFINE_MATRICES_CPU(name, type)                                                    \
  int64_t lltm_panel_columns_cpu_##name(void) noexcept {                                        \
    return lltm::host_products().panel_bytes / static_cast<int64_t>(sizeof(type));              \
  }                                                                                             \
  int32_t lltm_pack_matrix_cpu_##name(int64_t inner, int64_t columns, const type* b,            \
                                      int64_t row_step, int64_t column_step,                    \
                                      type* packed) noexcept {                                  \
    const lltm::MatrixPacking<type> arguments = {                                               \
        inner, columns, row_step, column_step, b, packed};                                      \
    return lltm::run_products(arguments);                                                       \
  }                                                                                             \
  int32_t lltm_multiply_packed_cpu_##name(int64_t rows, int64_t inner, int64_t columns,         \
                                          const type* a, int64_t row_step, int64_t column_step, \
                                          const type* packed, type* c, int64_t c_row_step,      \
                                          int32_t adds) noexcept {                              \
    const lltm::PackedProduct<type> arguments = {                                               \
        rows, inner, columns, row_step, column_step, c_row_step, adds, a, packed, c};           \
    return lltm::run_products(arguments);                                                       \
  }                                                                                             \
  int32_t lltm_multiply_cpu_##name(int64_t rows, int64_t inner, int64_t columns, const type* a, \
                                   int64_t row_step, int64_t column_step, const type* b,        \
                                   int64_t b_row_step, int64_t b_column_step, type* c,          \
                                   int64_t c_row_step, int32_t adds) noexcept {                 \
    const lltm::MatrixProduct<type> arguments = {                                               \
        {rows, inner, columns, row_step, column_step, c_row_step, adds, a, nullptr, c},         \
        {inner, columns, b_row_step, b_column_step, b, nullptr}};                               \
    return lltm::run_products(arguments);                                                       \
  }

LLTM_DEFINE_MATRICES_CPU(float, float)
LLTM_DEFINE_MATRICES_CPU(double, double)

int32_t lltm_vector_bytes(void) noexcept { return lltm::host_products().vector_bytes; }
