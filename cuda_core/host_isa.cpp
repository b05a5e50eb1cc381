// Whose processor this is, and which instruction set the host twins run with.
#include <stdint.h>
#include <string.h>

#include "cell_host.h"
#include "lltm.h"

#if !defined(LLTM_HOST_X86_VARIANTS)
#elif defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace lltm {

#ifdef LLTM_HOST_X86_VARIANTS

struct Registers {
  uint32_t eax, ebx, ecx, edx;
};

// All zero where the processor does not know the leaf.
static Registers cpuid(uint32_t leaf) {
  Registers r = {};
#if defined(_MSC_VER) && !defined(__clang__)
  int values[4];
  __cpuid(values, static_cast<int>(leaf & 0x80000000u));
  if (static_cast<uint32_t>(values[0]) < leaf) return r;
  __cpuidex(values, static_cast<int>(leaf), 0);
  memcpy(&r, values, sizeof(r));
#else
  if (__get_cpuid_max(leaf & 0x80000000u, nullptr) < leaf) return r;
  __cpuid_count(leaf, 0, r.eax, r.ebx, r.ecx, r.edx);
#endif
  return r;
}

// Which registers the operating system saves; only where OSXSAVE is.
static uint64_t saved_registers() {
#if defined(_MSC_VER) && !defined(__clang__)
  return _xgetbv(0);
#else
  uint32_t low, high;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));  // xgetbv
  return static_cast<uint64_t>(high) << 32 | low;
#endif
}

static bool has(uint64_t bits, uint64_t wanted) { return (bits & wanted) == wanted; }

static HostIsa find_host_isa() {
  // What a compiler may use that is told AVX2, or AVX-512: more than the names say.
  const uint32_t kFma = 1u << 12, kMovbe = 1u << 22, kOsxsave = 1u << 27, kF16c = 1u << 29;
  const uint32_t kBmi1 = 1u << 3, kAvx2 = 1u << 5, kBmi2 = 1u << 8;
  const uint32_t kAvx512f = 1u << 16, kAvx512dq = 1u << 17, kAvx512cd = 1u << 28;
  const uint32_t kAvx512bw = 1u << 30, kAvx512vl = 1u << 31;
  const uint32_t kLzcnt = 1u << 5;
  const uint64_t kYmm = 0x6, kZmm = 0xe6;

  if (!has(cpuid(1).ecx, kFma | kMovbe | kOsxsave | kF16c)) return kHostBaseline;
  if (!has(cpuid(0x80000001u).ecx, kLzcnt)) return kHostBaseline;
  const uint32_t features = cpuid(7).ebx;
  const uint64_t saved = saved_registers();
  if (!has(features, kBmi1 | kAvx2 | kBmi2) || !has(saved, kYmm)) return kHostBaseline;
  const bool avx512 = has(features, kAvx512f | kAvx512dq | kAvx512cd | kAvx512bw | kAvx512vl);
  return avx512 && has(saved, kZmm) ? kHostAvx512 : kHostAvx2;
}

static int32_t find_processor() {
  const Registers vendor = cpuid(0);
  const uint32_t kAuth = 0x68747541u, kEnti = 0x69746e65u, kCamd = 0x444d4163u;  // AuthenticAMD
  if (vendor.ebx != kAuth || vendor.edx != kEnti || vendor.ecx != kCamd)
    return LLTM_PROCESSOR_OTHER;
  const uint32_t version = cpuid(1).eax;
  const uint32_t family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  return family >= 0x1a ? LLTM_PROCESSOR_AMD_ZEN5 : LLTM_PROCESSOR_AMD;
}

#else

static HostIsa find_host_isa() { return kHostBaseline; }
static int32_t find_processor() { return LLTM_PROCESSOR_OTHER; }

#endif  // LLTM_HOST_X86_VARIANTS

// When the library is loaded: on a virtual machine the questions are slow.
static const HostIsa found_host_isa = find_host_isa();
static const int32_t found_processor = find_processor();

HostIsa host_isa() { return found_host_isa; }

}  // namespace lltm

int32_t lltm_processor(void) noexcept { return lltm::found_processor; }
