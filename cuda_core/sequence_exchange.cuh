// What the blocks of a sequence spread over the GPU tell each other, through the L2 cache.
//
// A step's values (h going forward, d_gates going backward) are written once into the slot of that
// step in a ring, as words in the order in which tensor-core operands are read. A word, of 32 bits
// or a double, is read and written as one. It says by itself that it is there: until then all its
// bits are set, which no value is written as; in some formats none has the lowest. So readers poll
// the data, and there is no flag, no barrier and no order between words to rely on.
//
// A slot is used again after N steps. Its writer makes its words absent N / 2 steps before it
// writes them anew. A step is: the words of the step before are read; every F-th step, where
// F = N / 4 - 1, all threads execute fence.acq_rel.gpu; the block meets at a barrier; it writes.
// Where groups of rows take turns the first one's words are read before the fence, those of the
// others behind it. Writer and reader of a word are the same two threads in every step. In the PTX
// memory model:
// - The new word cannot be overtaken by its absence: one thread, one address, program order.
// - A reader cannot take the old word of N steps ago for the new one. The absence is written in
//   step s; the writer's next fence is in a step f <= s + F, where it then writes a word. The
//   reader has that word in step f + 1, and its next fence in f + F. It asks for the words of step
//   s + N / 2, which is not less, no earlier than in that step, behind the fence: causality order
//   leads from the absence to the load.
// - A reader is done with the old word when it is made absent. It read that of step u in step
//   u + 1, before a barrier. Those of its block that write have their next fence in a step
//   g <= u + 1 + F, and then write; the writer's block reads that in step g + 1, has its next fence
//   in g + F and meets at a barrier. It makes the word absent behind that, in step u + N / 2, which
//   is not less: causality order leads from the load to the absence.
// Where there are no more steps than slots nothing is used again, and there is no fence.
//
// The words of a format with a bit to spare say by it of which lap of the ring they are, an even or
// an odd one. Nothing is made absent, two slots are enough, and there is no fence:
// - A reader cannot take an older word. It took that of the lap before; loads of one thread from
//   one address do not go back; and that word has the other bit. Before the first lap all bits are
//   set, as in odd ones.
// - A word is not overwritten before all have read it, as long as no block gives up. Its writer
//   does so two steps later, when its block, or the other one of the cluster, has polled each word
//   of the step between until it was there; and that was sent when the writer's had polled those
//   of the step before. A poll that missed one would not have ended, and what overwrote it would
//   have been stored for that poll to end: out of thin air, which the model rules out. Nor does a
//   GPU store ahead of a loop; each polled word is in its register before its block meets.
#ifndef LLTM_SEQUENCE_EXCHANGE_CUH_
#define LLTM_SEQUENCE_EXCHANGE_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

namespace lltm {
namespace {

// Slots of a ring. A fence takes about half as long as a step, so the more the better, until so
// much of the L2 cache is in use that others miss it.
const int kFewestSlots = 32;
const int kMostSlots = 128;
const int64_t kLargestRing = 8 << 20;
// Where words say of which lap they are.
const int kSlotsOfLaps = 2;

inline int slots_of_ring(int64_t steps, int64_t slot_bytes) {
  int slots = kFewestSlots;
  while (slots < kMostSlots && slots < steps && 2 * slots * slot_bytes <= kLargestRing) slots *= 2;
  return slots;
}
inline int fence_every(int64_t steps, int slots) {
  const int never = 1 << 30;
  return steps > slots ? slots / 4 - 1 : never;
}

const uint32_t kAbsent = 0xffffffffu;  // the word, or half of it
// That a read takes, about.
const long long kClocksOfRead = 500;

// 16 bytes of words of kBytes each.
template <int kBytes>
__device__ __forceinline__ uint4 load_words(const void* p) {
  static_assert(kBytes == 4, "a double has a specialization");
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

template <>
__device__ __forceinline__ uint4 load_words<8>(const void* p) {
  unsigned long long first, second;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];"
               : "=l"(first), "=l"(second)
               : "l"(p)
               : "memory");
  return make_uint4(static_cast<uint32_t>(first), static_cast<uint32_t>(first >> 32),
                    static_cast<uint32_t>(second), static_cast<uint32_t>(second >> 32));
}

// Whether one of them is, or of another lap. A maximum takes fewer instructions than four
// comparisons, which would wait for one another.
template <typename Format>
__device__ __forceinline__ bool is_absent(uint4 v, uint32_t lap) {
  if (Format::kLapBit != 0) {
    return (((v.x ^ lap) | (v.y ^ lap) | (v.z ^ lap) | (v.w ^ lap)) & Format::kLapBit) != 0;
  }
  if (Format::kWordBytes == 8) return max(v.x & v.y, v.z & v.w) == kAbsent;
  return max(max(v.x, v.y), max(v.z, v.w)) == kAbsent;
}

__device__ __forceinline__ void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

__device__ __forceinline__ void store_words(void* p, uint32_t word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(word) : "memory");
}

__device__ __forceinline__ void store_words(void* p, uint2 words) {
  asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};" ::"l"(p), "r"(words.x), "r"(words.y)
               : "memory");
}

__device__ __forceinline__ void store_words(void* p, uint4 words) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

__device__ __forceinline__ void store_words(void* p, ulonglong2 words) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1,%2};" ::"l"(p), "l"(words.x), "l"(words.y)
               : "memory");
}

template <typename Words>
__device__ __forceinline__ Words absent_words();
template <>
__device__ __forceinline__ uint32_t absent_words() {
  return kAbsent;
}
template <>
__device__ __forceinline__ uint2 absent_words() {
  return make_uint2(kAbsent, kAbsent);
}
template <>
__device__ __forceinline__ uint4 absent_words() {
  return make_uint4(kAbsent, kAbsent, kAbsent, kAbsent);
}
template <>
__device__ __forceinline__ ulonglong2 absent_words() {
  return make_ulonglong2(~0ull, ~0ull);
}

// The 4, 8 or 16 bytes of a pair of values, to shared memory, behind the thread's back.
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
// way at once, for a read takes hundreds of clocks. A piece that is not there is asked for once
// more, which takes as long again and delays everyone: best ask when it is likely to be there.
template <int kPieces, int kMostDepth, typename Format>
class Reader {
 public:
  static const int kDepth = kPieces < kMostDepth ? kPieces : kMostDepth;
  // Pieces are waited for a few at a time.
  static const int kTogether = kDepth < 4 ? kDepth : 4;
  static const bool kAsksMeanwhile = kDepth < kPieces;

  // Asks, and does not wait.
  __device__ __forceinline__ void begin(const char* pieces, uint32_t lap, long long patience) {
    pieces_ = pieces;
    lap_ = lap;
    patience_ = patience;
    give_up_at_ = 0;
    gave_up_ = false;
    ask<0, kDepth>();
  }

  // Piece kPiece; each once, in order.
  template <int kPiece>
  __device__ __forceinline__ uint4 take() {
    const int together = kPiece + kTogether < kPieces ? kPiece + kTogether : kPieces;
    if (kPiece % kTogether == 0) wait<kPiece, together>();
    const uint4 piece = words_[kPiece % kDepth];
    if (kPiece + kDepth < kPieces) ask<kPiece + kDepth, kPiece + kDepth + 1>();
    return piece;
  }

  __device__ __forceinline__ bool gave_up() const { return gave_up_; }

 private:
  template <int kFrom, int kTo>
  __device__ __forceinline__ void ask() {
#pragma unroll
    for (int c = kFrom; c < kTo; ++c)
      words_[c % kDepth] = load_words<Format::kWordBytes>(pieces_ + c * 512);
  }

  // Until the pieces [kFrom, kTo) are there. Asks once more for those that are not. While further
  // ones are asked for, every way out is behind a look at all of these: if one led past reads that
  // may be under way, the compiler would have the products wait for them, and as it counts reads
  // together, for the further ones too. Where all were asked for at the start that costs nothing.
  template <int kFrom, int kTo>
  __device__ __forceinline__ void wait() {
    do {
      bool all_there = true;  // without branches, of which && makes some
#pragma unroll
      for (int c = kFrom; c < kTo; ++c) all_there &= !is_absent<Format>(words_[c % kDepth], lap_);
      if (__all_sync(0xffffffffu, all_there)) return;
      // The clock is not free: who need not wait does not read it. This read was waited for.
      const long long now = clock64();
      if (give_up_at_ == 0) give_up_at_ = now - kClocksOfRead + patience_;
      gave_up_ = __any_sync(0xffffffffu, now > give_up_at_);
      if (kAsksMeanwhile && gave_up_) return;
#pragma unroll
      for (int c = kFrom; c < kTo; ++c) {
        if (is_absent<Format>(words_[c % kDepth], lap_))
          words_[c % kDepth] = load_words<Format::kWordBytes>(pieces_ + c * 512);
      }
    } while (kAsksMeanwhile || !gave_up_);
  }

  const char* pieces_;
  uint32_t lap_;
  uint4 words_[kDepth];
  long long patience_, give_up_at_;
  bool gave_up_;
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_EXCHANGE_CUH_
