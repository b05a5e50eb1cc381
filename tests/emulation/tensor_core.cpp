// What the tensor cores' instructions do; see cuda_runtime.h.
#include <initializer_list>

#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "lltm_types.h"

namespace emulated {

namespace {

bool is_bfloat16(const char* type) {
  if (strcmp(type, "bf16") == 0) return true;
  if (strcmp(type, "f16") != 0) __builtin_trap();
  return false;
}

// Any NaN becomes the same one.
uint32_t rounded(bool is_bfloat16, float value) {
  if (value != value) return 0x7fff;
  lltm_bfloat16 brief;
  lltm_half half;
  lltm::store(value, &brief);
  lltm::store(value, &half);
  return is_bfloat16 ? brief.bits : half.bits;
}

}  // namespace

uint32_t rounded_pair(const char* type, float high, float low) {
  const bool brief = is_bfloat16(type);
  return rounded(brief, low) | rounded(brief, high) << 16;
}

// Lane 4g + q has of a, in rows g and g + 8, the terms of its qth words, and those of four words
// later; of b the same terms of column g; of c, in both rows, columns 2q and 2q + 1. A word has two
// terms, or one of TF32.
void mma(const char* shape, const char* type, float& c0, float& c1, float& c2, float& c3,
         std::initializer_list<uint32_t> factors) {
  const bool is_tf32 = strcmp(shape, "m16n8k8") == 0 && strcmp(type, "tf32") == 0;
  if (!is_tf32 && strcmp(shape, "m16n8k16") != 0) __builtin_trap();
  const bool brief = !is_tf32 && is_bfloat16(type);
  const unsigned in_word = is_tf32 ? 1 : 2;
  const unsigned turn = give_to_warp(factors.begin(), factors.size() * sizeof(uint32_t), -1);
  const unsigned first = threadIdx.x / 32 * 32;
  const unsigned g = threadIdx.x % 32 / 4;
  const unsigned q = threadIdx.x % 4;
  // Of word `word` of four lanes of the operand, and of the word `next` further: all terms.
  const unsigned terms = 8 * in_word;
  const auto line = [&](double* values, unsigned four, int word, int next) {
    for (unsigned k = 0; k < terms; ++k) {
      const unsigned char* const words = given_by(first + 4 * four + k / in_word % 4, turn);
      uint32_t bits;
      memcpy(&bits, words + 4 * (word + (k / in_word / 4) * next), sizeof(bits));
      const uint16_t short_bits = static_cast<uint16_t>(bits >> 16 * (k % in_word));
      values[k] = is_tf32 ? __uint_as_float(bits & 0xffffe000u)
                  : brief ? lltm::load(lltm_bfloat16{short_bits})
                          : lltm::load(lltm_half{short_bits});
    }
  };
  double rows[2][16], columns[2][16];
  for (int i = 0; i < 2; ++i) {
    line(rows[i], g, i, 2);
    line(columns[i], 2 * q + i, 4, 1);
  }
  float* const c[4] = {&c0, &c1, &c2, &c3};
  for (int i = 0; i < 4; ++i) {
    double sum = *c[i];
    for (unsigned k = 0; k < terms; ++k) sum += rows[i / 2][k] * columns[i % 2][k];
    *c[i] = static_cast<float>(sum);
    if (fabs(*c[i]) > fabs(sum)) *c[i] = nextafterf(*c[i], 0.0f);
  }
}

}  // namespace emulated

float __half2float(__half value) { return lltm::load(lltm_half{value.bits}); }
