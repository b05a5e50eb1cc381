// What the tensor cores' instructions do; see cuda_runtime.h.
#include <initializer_list>

#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "lltm_types.h"

namespace emulated {

uint32_t rounded_pair(const char* type, float high, float low) {
  if (strcmp(type, "f16") != 0) __builtin_trap();
  lltm_half halves[2];
  lltm::store(low, &halves[0]);
  lltm::store(high, &halves[1]);
  return halves[0].bits | static_cast<uint32_t>(halves[1].bits) << 16;
}

// Lane 4g + q has of a, in rows g and g + 8, terms 2q and 2q + 1, and those eight later; of b the
// same terms of column g; of c, in both rows, columns 2q and 2q + 1.
void mma(const char* shape, const char* type, float& c0, float& c1, float& c2, float& c3,
         std::initializer_list<uint32_t> factors) {
  if (strcmp(shape, "m16n8k16") != 0 || strcmp(type, "f16") != 0) __builtin_trap();
  const unsigned turn = give_to_warp(factors.begin(), factors.size() * sizeof(uint32_t), -1);
  const unsigned first = threadIdx.x / 32 * 32;
  const auto value = [&](unsigned lane, int word, int half) {
    lltm_half bits;
    memcpy(&bits, given_by(first + lane, turn) + 4 * word + 2 * half, sizeof(bits));
    return static_cast<double>(lltm::load(bits));
  };
  const unsigned g = threadIdx.x % 32 / 4;
  const unsigned q = threadIdx.x % 4;
  float* const c[4] = {&c0, &c1, &c2, &c3};
  for (int i = 0; i < 4; ++i) {
    double sum = *c[i];
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned lane = k % 8 / 2;
      const int later = k / 8;
      sum += value(4 * g + lane, 2 * later + i / 2, k % 2) *
             value(4 * (2 * q + i % 2) + lane, 4 + later, k % 2);
    }
    *c[i] = static_cast<float>(sum);
    if (fabs(*c[i]) > fabs(sum)) *c[i] = nextafterf(*c[i], 0.0f);
  }
}

}  // namespace emulated

float __half2float(__half value) { return lltm::load(lltm_half{value.bits}); }
