// The host twins and products for x86-64 with AVX2 and FMA.
#include "cell_host.h"
#include "step_host.h"

#ifdef LLTM_HOST_X86_VARIANTS

#if !defined(LLTM_HOST_X86_PRAGMAS)
#if !defined(__AVX2__)
#error "this file is compiled with flags of its own: build_support/sources.py"
#endif
#elif defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define LLTM_VECTOR_BYTES 32
#include "cell_host_loops.h"
#include "gradients_host_loops.h"
#include "matrix_host_loops.h"
#include "step_host_loops.h"

namespace lltm {
LLTM_DEFINE_HOST_CELL(host_cell_avx2)
LLTM_DEFINE_HOST_STEP(host_step_avx2)
LLTM_DEFINE_HOST_PRODUCTS(host_products_avx2)
}  // namespace lltm

#if !defined(LLTM_HOST_X86_PRAGMAS)
#elif defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // LLTM_HOST_X86_VARIANTS
