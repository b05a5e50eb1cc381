// Doubles on tensor cores, laid out as tensor_core.cuh says.
#ifndef LLTM_TENSOR_CORE_DOUBLE_CUH_
#define LLTM_TENSOR_CORE_DOUBLE_CUH_

#include "tensor_core.cuh"

namespace lltm {
namespace {

// A NaN of some kinds must not look like nothing.
__device__ __forceinline__ unsigned long long plain_bits(double x) {
  return x == x ? static_cast<unsigned long long>(__double_as_longlong(x)) : 0x7ff8000000000000ull;
}

// A run is two doubles, one step of K = 8.
struct DoubleFormat {
  typedef ExactMath Math;
  static const bool kScaled = false;
  typedef UnitPair Units;
  typedef ulonglong2 Sent;
  static const int kRun = 2;
  static const bool kGatesTogether = false;
  static const uint32_t kLapBit = 0;
  static const bool kLongRun = false;
  static const int kWordBytes = 8;

  __device__ static __forceinline__ uint4 run(const double* v) {
    return make_uint4(__double2loint(v[0]), __double2hiint(v[0]), __double2loint(v[1]),
                      __double2hiint(v[1]));
  }
  __device__ static __forceinline__ Sent sent(double x, double y) {
    return make_ulonglong2(plain_bits(x), plain_bits(y));
  }
  __device__ static __forceinline__ Units units(uint4 even, uint4 odd) {
    return {make_uint4(even.x, even.y, odd.x, odd.y), make_uint4(even.z, even.w, odd.z, odd.w)};
  }
  template <typename Sums>
  __device__ static __forceinline__ void multiply(Sums& sums, const Units& a, uint4 b) {
    mma(sums.main, first(a.first), second(a.first), first(a.second), second(a.second), first(b),
        second(b));
  }
  template <typename Sums>
  __device__ static __forceinline__ double total(const Sums& sums, int i) {
    return sums.total(i);
  }

 private:
  __device__ static __forceinline__ double first(uint4 v) { return __hiloint2double(v.y, v.x); }
  __device__ static __forceinline__ double second(uint4 v) { return __hiloint2double(v.w, v.z); }
  __device__ static __forceinline__ void mma(double* c, double a0, double a1, double a2, double a3,
                                             double b0, double b1) {
#ifdef LLTM_TENSOR_CORES
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
#endif
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_TENSOR_CORE_DOUBLE_CUH_
