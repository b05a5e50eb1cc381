// Two blocks that share a product out, a cluster: each multiplies half of K for the units of both,
// and gives the other one its sums through its shared memory.
//
// Sums are stored by st.async, which counts their bytes at the receiver's mbarrier. That has one
// phase for every kBuffers counts of steps and turns. The giver must not be kBuffers counts ahead,
// or it would write what has not been taken: it gives for a step when it has the words of the step
// before, of half of K. Those of its partner are among them where K is gate by gate; else they were
// needed by another block for the step before that. And a block's words are sent when it has taken.
// So with `turns` groups a giver is less than 2 * turns counts ahead.
//
// For sequence_exchange.cuh it makes no difference that a block reads half of the words itself. A
// giver has what it read, of step g, in step g + 1, and gives behind its next fence, not later than
// in step g + F. The taker acquires it there, behind its barrier: so early would it have been
// ordered by words of its own.
#ifndef LLTM_SEQUENCE_CLUSTER_CUH_
#define LLTM_SEQUENCE_CLUSTER_CUH_

#include <cuda_runtime.h>
#include <stdint.h>

#include "tensor_core.cuh"

// st.async came with CUDA 12.1.
#if defined(LLTM_TENSOR_CORES) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
#define LLTM_CLUSTERS 1
#endif

namespace lltm {
namespace {

const int kMostTurnsOfCluster = 4;

// Of a block alone: there is nothing to give.
template <int kCluster, typename Two, int kCount, int kGates, bool kOneGroup>
struct PartnerSums {
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void expect(int) {}
  __device__ __forceinline__ void give(int, int, int, int, Two) {}
  __device__ __forceinline__ bool has_come(int, long long) const { return true; }
  __device__ __forceinline__ void add(int, int, int, Two&) const {}
  __device__ __forceinline__ void end() const {}
};

// For each of kCount items kGates pairs.
template <typename Two, int kCount, int kGates, bool kOneGroup>
struct PartnerSums<2, Two, kCount, kGates, kOneGroup> {
  static const int kBuffers = kOneGroup ? 2 : 2 * kMostTurnsOfCluster;

  Two sums[kBuffers][kGates][kCount];
  uint64_t barriers[kBuffers];

  __device__ __forceinline__ void begin() {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int i = 0; i < kBuffers; ++i) init(barriers + i);
    }
    meet();
  }
  // By one thread, for every count in turn.
  __device__ __forceinline__ void expect(int count) {
#ifdef LLTM_CLUSTERS
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     address(barriers + count % kBuffers)),
                 "n"(sizeof(sums[0]))
                 : "memory");
#endif
  }
  // To the block of a rank, for one of its items.
  __device__ __forceinline__ void give(int rank, int count, int gate, int item, Two sum) {
    store_async(address_in(rank, &sums[count % kBuffers][gate][item]), sum,
                address_in(rank, barriers + count % kBuffers));
  }
  // Waits for what the other block gave. Returns false when it did not.
  __device__ __forceinline__ bool has_come(int count, long long patience) const {
    const uint32_t barrier = address(barriers + count % kBuffers);
    const uint32_t phase = count / kBuffers & 1;
    if (!is_complete(barrier, phase)) {
      const long long give_up_at = clock64() + patience;
      while (!is_complete(barrier, phase)) {
        if (clock64() > give_up_at) return false;
      }
    }
    return true;
  }
  __device__ __forceinline__ void add(int count, int gate, int item, Two& sum) const {
    const Two given = sums[count % kBuffers][gate][item];
    sum.x += given.x;
    sum.y += given.y;
  }
  // A block must be there as long as something is given to it.
  __device__ __forceinline__ void end() const { meet(); }

 private:
  __device__ __forceinline__ static uint32_t address(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
  }
  __device__ __forceinline__ static uint32_t address_in(int rank, const void* p) {
    uint32_t there = 0;
#ifdef LLTM_CLUSTERS
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address(p)), "r"(rank));
#endif
    return there;
  }
  __device__ __forceinline__ static void store_async(uint32_t to, float2 sum, uint32_t barrier) {
#ifdef LLTM_CLUSTERS
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(
            to),
        "f"(sum.x), "f"(sum.y), "r"(barrier)
        : "memory");
#endif
  }
  __device__ __forceinline__ static void store_async(uint32_t to, double2 sum, uint32_t barrier) {
#ifdef LLTM_CLUSTERS
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1,%2}, [%3];" ::"r"(
            to),
        "d"(sum.x), "d"(sum.y), "r"(barrier)
        : "memory");
#endif
  }
  __device__ __forceinline__ static void init(const uint64_t* barrier) {
#ifdef LLTM_CLUSTERS
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
  }
  __device__ __forceinline__ static bool is_complete(uint32_t barrier, uint32_t phase) {
    uint32_t complete = 1;
#ifdef LLTM_CLUSTERS
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(complete)
        : "r"(barrier), "r"(phase)
        : "memory");
#endif
    return complete != 0;
  }
  __device__ __forceinline__ static void meet() {
#ifdef LLTM_CLUSTERS
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
#endif
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_CLUSTER_CUH_
