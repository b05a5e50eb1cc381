/* Calls the core's host functions and compares them with the formula of C's own functions. Prints
 * the size of a long and "agrees". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lltm.h"

enum { kBatch = 5, kState = 37, kUnits = kBatch * kState }; /* no multiple of any vector's width */

static double random_value(void) { return 6.0 * rand() / RAND_MAX - 3.0; }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void compare(const char* what, double got, double expected, double tolerance) {
  const double size = fabs(expected) > 1 ? fabs(expected) : 1;
  if (fabs(got - expected) <= tolerance * size) return;
  printf("%s: %.17g, expected %.17g\n", what, got, expected);
  exit(1);
}

static void expect(const char* what, int32_t got, int32_t expected) {
  if (got == expected) return;
  printf("%s: status %d, expected %d\n", what, (int)got, (int)expected);
  exit(1);
}

#define CHECK(name, type, tolerance)                                                               \
  static void check_##name(void) {                                                                 \
    static type gates[3 * kUnits], bias[3 * kState], old_cell[kUnits], new_h[kUnits];              \
    static type new_cell[kUnits], grad_h[kUnits], grad_cell[kUnits], d_gates[3 * kUnits];          \
    static type d_old_cell[kUnits];                                                                \
    int k, row, unit;                                                                              \
    for (k = 0; k < 3 * kUnits; ++k) gates[k] = (type)random_value();                              \
    for (k = 0; k < 3 * kState; ++k) bias[k] = (type)random_value();                               \
    for (k = 0; k < kUnits; ++k) old_cell[k] = (type)random_value();                               \
    for (k = 0; k < kUnits; ++k) grad_h[k] = (type)random_value();                                 \
    for (k = 0; k < kUnits; ++k) grad_cell[k] = (type)random_value();                              \
    expect("forward",                                                                              \
           lltm_cell_forward_cpu_##name(kBatch, kState, gates, bias, old_cell, new_h, new_cell, 0, \
                                        0, 0, 0),                                                  \
           0);                                                                                     \
    expect("backward",                                                                             \
           lltm_cell_backward_cpu_##name(kBatch, kState, grad_h, grad_cell, gates, bias, new_cell, \
                                         d_gates, d_old_cell, 0),                                  \
           0);                                                                                     \
    for (row = 0; row < kBatch; ++row) {                                                           \
      for (unit = 0; unit < kState; ++unit) {                                                      \
        const int at = row * kState + unit;                                                        \
        const type* a = gates + row * 3 * kState + unit;                                           \
        const type* d = d_gates + row * 3 * kState + unit;                                         \
        const double i = sigmoid((double)a[0] + bias[unit]);                                       \
        const double o = sigmoid((double)a[kState] + bias[kState + unit]);                         \
        const double x = (double)a[2 * kState] + bias[2 * kState + unit];                          \
        const double candidate = x > 0 ? x : expm1(x);                                             \
        const double t = tanh(old_cell[at] + candidate * i);                                       \
        const double d_cell = grad_h[at] * o * (1 - t * t) + grad_cell[at];                        \
        compare("new_cell", new_cell[at], old_cell[at] + candidate * i, tolerance);                \
        compare("new_h", new_h[at], t * o, tolerance);                                             \
        compare("d_old_cell", d_old_cell[at], d_cell, tolerance);                                  \
        compare("d_input", d[0], d_cell * candidate * i * (1 - i), tolerance);                     \
        compare("d_output", d[kState], grad_h[at] * t * o * (1 - o), tolerance);                   \
        compare("d_candidate", d[2 * kState], d_cell * i * (x > 0 ? 1 : exp(x)), tolerance);       \
      }                                                                                            \
    }                                                                                              \
    expect("no gates",                                                                             \
           lltm_cell_forward_cpu_##name(kBatch, kState, 0, bias, old_cell, new_h, new_cell, 0, 0,  \
                                        0, 0),                                                     \
           -3);                                                                                    \
    expect("too many rows",                                                                        \
           lltm_cell_forward_cpu_##name(INT64_C(1) << 62, kState, gates, bias, old_cell, new_h,    \
                                        new_cell, 0, 0, 0, 0),                                     \
           -1);                                                                                    \
  }

CHECK(float, float, 4e-6)
CHECK(double, double, 1e-14)

int main(void) {
  check_float();
  check_double();
  printf("long %d bytes, agrees\n", (int)sizeof(long));
  return 0;
}
