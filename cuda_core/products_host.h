// The host products of the cell: one body, compiled for several instruction sets.
#ifndef LLTM_PRODUCTS_HOST_H_
#define LLTM_PRODUCTS_HOST_H_

#include "cell_host.h"
#include "lltm_products.h"

namespace lltm {

struct HostProducts {
  void (*gates_float)(const GateProducts<float>&);
  void (*gates_double)(const GateProducts<double>&);
  void (*gradients_float)(const GradientProducts<float>&);
  void (*gradients_double)(const GradientProducts<double>&);
  int32_t vector_bytes;
};

extern const HostProducts host_products_baseline;
#ifdef LLTM_HOST_X86_VARIANTS
extern const HostProducts host_products_avx2;
extern const HostProducts host_products_avx512;
#endif

}  // namespace lltm

#endif  // LLTM_PRODUCTS_HOST_H_
