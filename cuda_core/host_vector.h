// A vector register of the instruction set that the including file is compiled for: as many lanes
// as fit into LLTM_VECTOR_BYTES, which that file defines, or 16 bytes.
//
// Loops over lanes are written by hand because a compiler may not reorder a sum: it vectorises no
// dot product without fast-math.
#ifndef LLTM_HOST_VECTOR_H_
#define LLTM_HOST_VECTOR_H_

#include <stdint.h>
#include <string.h>

#include "lltm_math.h"

#ifndef LLTM_VECTOR_BYTES
#define LLTM_VECTOR_BYTES 16
#endif

// Before a loop over vectors whose length is known: only unrolled do they stay in registers.
#if defined(__clang__)
#define LLTM_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && __GNUC__ >= 8
#define LLTM_UNROLL _Pragma("GCC unroll 16")
#else
#define LLTM_UNROLL
#endif

// As LLTM_INLINE, for members.
#if defined(_MSC_VER)
#define LLTM_MEMBER __forceinline
#else
#define LLTM_MEMBER inline __attribute__((always_inline))
#endif

namespace lltm {
namespace {

// What the products report of themselves. Nothing promises that a compiler without vector types
// keeps Lanes in registers: there the products of others are the safer choice.
#if defined(__GNUC__) || defined(__clang__)
const int32_t kVectorBytes = LLTM_VECTOR_BYTES;
#else
const int32_t kVectorBytes = 16;
#endif

#if defined(__GNUC__) || defined(__clang__)
template <typename T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(LLTM_VECTOR_BYTES)));
  typedef int32_t Places __attribute__((vector_size(LLTM_VECTOR_BYTES)));
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(LLTM_VECTOR_BYTES)));
  typedef int64_t Places __attribute__((vector_size(LLTM_VECTOR_BYTES)));
};
#else
template <typename T>
struct Lanes {
  T lane[LLTM_VECTOR_BYTES / sizeof(T)];
  T& operator[](int64_t i) { return lane[i]; }
  T operator[](int64_t i) const { return lane[i]; }
};
template <typename T>
struct VectorOf {
  typedef Lanes<T> Type;
};
template <typename T>
LLTM_INLINE void operator+=(Lanes<T>& sum, const Lanes<T>& a) {
  for (int64_t i = 0; i < int64_t(LLTM_VECTOR_BYTES / sizeof(T)); ++i) sum[i] += a[i];
}
template <typename T>
LLTM_INLINE Lanes<T> operator*(const Lanes<T>& a, const Lanes<T>& b) {
  Lanes<T> product;
  for (int64_t i = 0; i < int64_t(LLTM_VECTOR_BYTES / sizeof(T)); ++i) product[i] = a[i] * b[i];
  return product;
}
template <typename T>
LLTM_INLINE Lanes<T> operator*(const Lanes<T>& a, T b) {
  Lanes<T> product;
  for (int64_t i = 0; i < int64_t(LLTM_VECTOR_BYTES / sizeof(T)); ++i) product[i] = a[i] * b;
  return product;
}
#endif

template <typename T>
using Vector = typename VectorOf<T>::Type;

template <typename T>
struct Width {
  enum : int64_t { kLanes = LLTM_VECTOR_BYTES / sizeof(T) };
};

// Asks for memory that is needed soon; any address is allowed.
LLTM_INLINE void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  (void)address;
#endif
}

// Vectors go by pointer: their calling convention differs between instruction sets.

template <typename T>
LLTM_INLINE void load_vector(const T* from, Vector<T>* to) {
  memcpy(to, from, sizeof(*to));
}

template <typename T>
LLTM_INLINE void store_vector(const Vector<T>& from, T* to) {
  memcpy(to, &from, sizeof(from));
}

// The first `count` lanes; the others are 0.
template <typename T>
LLTM_INLINE void load_lanes(const T* from, int64_t count, Vector<T>* to) {
  T lanes[Width<T>::kLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  memcpy(to, lanes, sizeof(lanes));
}

template <typename T>
LLTM_INLINE void store_lanes(const Vector<T>& from, int64_t count, T* to) {
  T lanes[Width<T>::kLanes];
  memcpy(lanes, &from, sizeof(lanes));
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// Clears all lanes but the last `count`.
template <typename T>
LLTM_INLINE void keep_last(int64_t count, Vector<T>* v) {
#if defined(__GNUC__) || defined(__clang__)
  static const int32_t kMask[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  typedef typename VectorOf<T>::Places Bits;
  Bits mask;
  const int64_t words = count * int64_t(sizeof(T) / 4) - LLTM_VECTOR_BYTES / 4;
  memcpy(&mask, kMask + 16 + words, sizeof(mask));
  *v = (Vector<T>)((Bits)*v & mask);
#else
  for (int64_t i = 0; i + count < Width<T>::kLanes; ++i) (*v)[i] = T(0);
#endif
}

// The last columns % kLanes values of a row, in some lanes; the others are 0.
template <typename T>
LLTM_INLINE void load_rest(const T* row, int64_t columns, Vector<T>* to) {
  const int64_t lanes = Width<T>::kLanes;
  if (columns < lanes) return load_lanes(row, columns, to);
  load_vector(row + columns - lanes, to);
  keep_last<T>(columns % lanes, to);
}

// Sums of neighbouring lanes: first those of `a`, then those of `b`.
template <typename T>
LLTM_INLINE void pair_sums(const Vector<T>& a, const Vector<T>& b, Vector<T>* sums) {
#if defined(__GNUC__) && !defined(__clang__)
  static const int8_t kPlaces[17] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 0};
  typename VectorOf<T>::Places even, odd;
  for (int64_t i = 0; i < Width<T>::kLanes; ++i) {
    even[i] = kPlaces[i];
    odd[i] = kPlaces[i] + 1;
  }
  *sums = __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
#else
  const int64_t half = Width<T>::kLanes / 2;
  Vector<T> result;
  for (int64_t i = 0; i < half; ++i) {
    result[i] = a[2 * i] + a[2 * i + 1];
    result[half + i] = b[2 * i] + b[2 * i + 1];
  }
  *sums = result;
#endif
}

// One step of adding up the lanes of kCount vectors; kLeft is how many parts each sum is in. By
// recursion, because compilers keep vectors in registers only where every index is known.
template <typename T, int kCount, int kLeft>
struct LaneSums {
  enum { kPairs = (kCount + 1) / 2 };
  static LLTM_MEMBER void add(const Vector<T>* parts, T* sums) {
    Vector<T> pairs[kPairs];
    LLTM_UNROLL
    for (int i = 0; i < kPairs; ++i) {
      pair_sums<T>(parts[2 * i], parts[kCount > 1 ? 2 * i + 1 : 2 * i], &pairs[i]);
    }
    LaneSums<T, kPairs, kLeft / 2>::add(pairs, sums);
  }
};

template <typename T>
struct LaneSums<T, 1, 1> {
  static LLTM_MEMBER void add(const Vector<T>* parts, T* sums) { store_vector<T>(*parts, sums); }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_HOST_VECTOR_H_
