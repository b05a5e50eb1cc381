/* Stand-in for the header of this name that comes with MSVC: see ../README.md. */
#pragma once
#include <corecrt.h>

/* C's functions of real numbers; s is the suffix of their names for one type. */
#define LLTM_1(type, name) type __cdecl name(type);
#define LLTM_2(type, name) type __cdecl name(type, type);
#define LLTM_FUNCTIONS(type, s)                                                                    \
  LLTM_1(type, acos##s)                                                                            \
  LLTM_1(type, asin##s) LLTM_1(type, atan##s) LLTM_1(type, ceil##s) LLTM_1(type, cos##s) LLTM_1(   \
      type, cosh##s) LLTM_1(type, exp##s) LLTM_1(type, fabs##s) LLTM_1(type, floor##s)             \
      LLTM_1(type, log##s) LLTM_1(type, log10##s) LLTM_1(type, sin##s) LLTM_1(type, sinh##s)       \
          LLTM_1(type, sqrt##s) LLTM_1(type, tan##s) LLTM_1(type, tanh##s) LLTM_1(type, acosh##s)  \
              LLTM_1(type, asinh##s) LLTM_1(type, atanh##s) LLTM_1(type, cbrt##s) LLTM_1(          \
                  type, erf##s) LLTM_1(type, erfc##s) LLTM_1(type, exp2##s) LLTM_1(type, expm1##s) \
                  LLTM_1(type, lgamma##s) LLTM_1(type, log1p##s) LLTM_1(type, log2##s)             \
                      LLTM_1(type, logb##s) LLTM_1(type, nearbyint##s) LLTM_1(type, rint##s)       \
                          LLTM_1(type, round##s) LLTM_1(type, tgamma##s) LLTM_1(type, trunc##s)    \
                              LLTM_2(type, atan2##s) LLTM_2(type, fmod##s) LLTM_2(type, pow##s)    \
                                  LLTM_2(type, copysign##s) LLTM_2(type, fdim##s)                  \
                                      LLTM_2(type, fmax##s) LLTM_2(type, fmin##s)                  \
                                          LLTM_2(type, nextafter##s) LLTM_2(type, remainder##s)    \
                                              type __cdecl fma##s(type, type, type);               \
  type __cdecl frexp##s(type, int*);                                                               \
  int __cdecl ilogb##s(type);                                                                      \
  type __cdecl ldexp##s(type, int);                                                                \
  long __cdecl lrint##s(type);                                                                     \
  long __cdecl lround##s(type);                                                                    \
  long long __cdecl llrint##s(type);                                                               \
  long long __cdecl llround##s(type);                                                              \
  type __cdecl modf##s(type, type*);                                                               \
  type __cdecl nan##s(const char*);                                                                \
  type __cdecl remquo##s(type, type, int*);                                                        \
  type __cdecl scalbln##s(type, long);                                                             \
  type __cdecl scalbn##s(type, int);

extern "C" {
LLTM_FUNCTIONS(float, f)
LLTM_FUNCTIONS(double, )
LLTM_FUNCTIONS(long double, l)
double __cdecl hypot(double, double);
float __cdecl _hypotf(float, float);
static __inline float __cdecl hypotf(float x, float y) { return _hypotf(x, y); }
double __cdecl _copysign(double, double);
double __cdecl _chgsign(double);
int __cdecl _finite(double);
int __cdecl _isnan(double);
double __cdecl _j0(double);
double __cdecl _j1(double);
double __cdecl _jn(int, double);
double __cdecl _y0(double);
double __cdecl _y1(double);
double __cdecl _yn(int, double);
int __cdecl _dsign(double);
int __cdecl _fdsign(float);
int __cdecl _ldsign(long double);
short __cdecl _dclass(double);
short __cdecl _fdclass(float);
short __cdecl _ldclass(long double);
}

#define HUGE_VAL (1e300 * 1e300)
#define INFINITY ((float)(1e300 * 1e300))
#define NAN (-(float)(INFINITY * 0.0f))

template <class T>
inline bool isfinite(T x) throw() {
  return x - x == 0;
}
template <class T>
inline bool isinf(T x) throw() {
  return x != 0 && x * 2 == x;
}
template <class T>
inline bool isnan(T x) throw() {
  return x != x;
}
template <class T>
inline bool isnormal(T x) throw() {
  return isfinite(x) && x != 0;
}
template <class T>
inline bool signbit(T x) throw() {
  return x < 0;
}
