// What the blocks of a sequence spread over the GPU tell each other, through the L2 cache.
//
// A step's values (h going forward, d_gates going backward) are written once into the slot of that
// step in a ring, as 32-bit words in the order in which tensor-core operands are read. A word says
// by itself that it is there: until then it is kAbsent, which no value is written as. So readers
// poll the data, and there is no flag, no barrier and no order between words to rely on.
//
// A slot is used again after kSlots steps. Its writer makes its words absent kRemovedAhead steps
// before it writes them anew. In the PTX memory model:
// - The new word cannot be overtaken by its absence: one thread, one address, program order.
// - A reader cannot take the old word of kSlots steps ago for the new one. Writer and reader of a
//   word are the same two threads in every step, and each executes fence.acq_rel.gpu every
//   kFenceEvery steps. After the absence was written, in step s, the writer's next fence comes in
//   a step f <= s + kFenceEvery, then its word of step f + 1, then the reader's load of that word,
//   then the reader's next fence, by step s + 2 * kFenceEvery + 1 <= s + kRemovedAhead, and only
//   then its load for step s + kRemovedAhead. That is causality order from the absence to this
//   load.
// - A reader is done with the old word when it is made absent: it was kSlots - kRemovedAhead steps
// ago,
//   and the writer has since read words that depend on what every reader computed from it, with
//   fences of both in between.
#ifndef LLTM_SEQUENCE_EXCHANGE_CUH_
#define LLTM_SEQUENCE_EXCHANGE_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

const int kSlots = 32;
const int kRemovedAhead = 16;
const int kFenceEvery = 4;
const uint32_t kAbsent = 0xffffffffu;

__device__ __forceinline__ uint4 load_words(const void* p) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

__device__ __forceinline__ bool is_absent(uint4 v) {
  return v.x == kAbsent || v.y == kAbsent || v.z == kAbsent || v.w == kAbsent;
}

__device__ __forceinline__ void store_words(void* p, uint32_t word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(word) : "memory");
}

__device__ __forceinline__ void store_words(void* p, uint2 words) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(words.x), "r"(words.y)
               : "memory");
}

// The four bytes or eight bytes of a pair of values, to shared memory, behind the thread's back.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(kBytes)
               : "memory");
}

__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// All but the last kLeft groups of this thread's copies are there.
template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// A warp's reads of one step: kPieces pieces of 512 bytes, lane by lane 16. kDepth pieces are under
// way at once; at first only two, for where one is missing others mostly are, and asking in vain
// delays everyone.
template <int kPieces, int kMostDepth>
class Reader {
 public:
  static const int kFirst = kPieces < 2 ? kPieces : 2;
  static const int kDepth = kPieces < kMostDepth ? kPieces : kMostDepth;

  // Asks, and does not wait. `written`: all of it is likely to be there.
  __device__ __forceinline__ void begin(const char* pieces, bool written) {
    pieces_ = pieces;
    written_ = written;
    ask<0, kFirst>();
    if (written) ask<kFirst, kDepth>();
  }

  // Waits for the first pieces and asks for more of them.
  __device__ __forceinline__ void first(long long patience) {
    give_up_at_ = clock64() + patience;
    gave_up_ = false;
    wait<0, kFirst, kFirst>();
    if (!written_) ask<kFirst, kDepth>();
  }

  // Piece kPiece; each once, in order.
  template <int kPiece>
  __device__ __forceinline__ uint4 take() {
    const int last = kPiece + kDepth;
    if (kPiece >= kFirst) wait < kPiece, kPiece + 1, last<kPieces ? last : kPieces>();
    const uint4 piece = words_[kPiece % kDepth];
    if (last < kPieces) ask<last, last + 1>();
    return piece;
  }

  __device__ __forceinline__ bool gave_up() const { return gave_up_; }

 private:
  template <int kFrom, int kTo>
  __device__ __forceinline__ void ask() {
#pragma unroll
    for (int c = kFrom; c < kTo; ++c) words_[c % kDepth] = load_words(pieces_ + c * 512);
  }

  // Until the pieces [kFrom, kTo) are there. Asks once more for those of [kFrom, kUpto) that are
  // not.
  template <int kFrom, int kTo, int kUpto>
  __device__ __forceinline__ void wait() {
    while (!gave_up_) {
      bool all_there = true;
#pragma unroll
      for (int c = kFrom; c < kTo; ++c) all_there = all_there && !is_absent(words_[c % kDepth]);
      if (__all_sync(0xffffffffu, all_there)) return;
      gave_up_ = __any_sync(0xffffffffu, clock64() > give_up_at_);
#pragma unroll
      for (int c = kFrom; c < kUpto; ++c) {
        if (is_absent(words_[c % kDepth])) words_[c % kDepth] = load_words(pieces_ + c * 512);
      }
    }
  }

  const char* pieces_;
  uint4 words_[kDepth];
  long long give_up_at_;
  bool written_;
  bool gave_up_;
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_EXCHANGE_CUH_
