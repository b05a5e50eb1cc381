// The math, once, for host and device: one number of the output and what belongs to it.
#pragma once

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define SWIGLU_HOST_DEVICE __host__ __device__
#else
#define SWIGLU_HOST_DEVICE
#endif

namespace swiglu {

// Overloads, for a bare exp of a float is computed in double by some compilers.
SWIGLU_HOST_DEVICE inline float exp_(float x) { return expf(x); }
SWIGLU_HOST_DEVICE inline double exp_(double x) { return exp(x); }

template <typename T>
SWIGLU_HOST_DEVICE T sigmoid(T x) {
  return T(1) / (T(1) + exp_(-x));
}

// Number `index` of the output; it is in row index / width.
template <typename T>
SWIGLU_HOST_DEVICE void forward(int64_t index, int64_t width, const T* input, T* output) {
  const T* gate = input + index / width * 2 * width + index % width;
  output[index] = gate[0] * sigmoid(gate[0]) * gate[width];
}

template <typename T>
SWIGLU_HOST_DEVICE void backward(int64_t index, int64_t width, const T* grad_output, const T* input,
                                 T* d_input) {
  const int64_t offset = index / width * 2 * width + index % width;
  const T gate = input[offset];
  const T value = input[offset + width];
  const T s = sigmoid(gate);
  d_input[offset] = grad_output[index] * value * s * (T(1) + gate * (T(1) - s));
  d_input[offset + width] = grad_output[index] * gate * s;
}

inline int32_t check(int64_t rows, int64_t width) {
  if (rows < 0) return -1;
  return width < 0 ? -2 : 0;
}

}  // namespace swiglu
