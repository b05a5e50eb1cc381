/* Stand-in for the header of this name that comes with MSVC: see ../README.md. MSVC has these built
 * in, and clang some of them. */
#pragma once

#define __cpuid(registers, leaf) standin_cpuid(registers, leaf, 0)
#define __cpuidex(registers, leaf, subleaf) standin_cpuid(registers, leaf, subleaf)
#define _xgetbv(which) standin_xgetbv(which)

static __inline void standin_cpuid(int registers[4], int leaf, int subleaf) {
  __asm__ volatile("cpuid"
                   : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
                   : "a"(leaf), "c"(subleaf));
}

static __inline unsigned __int64 standin_xgetbv(unsigned int which) {
  unsigned int low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(which));
  return static_cast<unsigned __int64>(high) << 32 | low;
}
