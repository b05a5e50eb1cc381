// The host products: one body, compiled for several instruction sets.
#ifndef LLTM_PRODUCTS_HOST_H_
#define LLTM_PRODUCTS_HOST_H_

#include "cell_host.h"
#include "lltm_matrix.h"
#include "lltm_products.h"

namespace lltm {

struct HostProducts {
  void (*gates_float)(const GateProducts<float>&);
  void (*gates_double)(const GateProducts<double>&);
  void (*gradients_float)(const GradientProducts<float>&);
  void (*gradients_double)(const GradientProducts<double>&);
  void (*pack_float)(const MatrixPacking<float>&);
  void (*pack_double)(const MatrixPacking<double>&);
  void (*multiply_packed_float)(const PackedProduct<float>&);
  void (*multiply_packed_double)(const PackedProduct<double>&);
  void (*multiply_float)(const MatrixProduct<float>&);
  void (*multiply_double)(const MatrixProduct<double>&);
  int32_t vector_bytes;
  int32_t panel_bytes;
};

extern const HostProducts host_products_baseline;
#ifdef LLTM_HOST_X86_VARIANTS
extern const HostProducts host_products_avx2;
extern const HostProducts host_products_avx512;
#endif

}  // namespace lltm

// Defines the table of the including file's loops.
#define LLTM_DEFINE_HOST_PRODUCTS(name)                       \
  const HostProducts name = {&gate_products_loop<float>,      \
                             &gate_products_loop<double>,     \
                             &gradient_products_loop<float>,  \
                             &gradient_products_loop<double>, \
                             &pack_matrix_loop<float>,        \
                             &pack_matrix_loop<double>,       \
                             &multiply_packed_loop<float>,    \
                             &multiply_packed_loop<double>,   \
                             &multiply_loop<float>,           \
                             &multiply_loop<double>,          \
                             kVectorBytes,                    \
                             kPanelVectors * LLTM_VECTOR_BYTES};

#endif  // LLTM_PRODUCTS_HOST_H_
