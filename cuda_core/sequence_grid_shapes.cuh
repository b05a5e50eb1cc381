// How much a block of a sequence spread over the GPU has of what, and its shared memory.
//
// kUnits: whose values it computes, of kRows rows at a time. kChunks: of K, that a warp multiplies;
// the first kInRegisters of them stay in registers. kDepth: pieces under way. kSideBySide: blocks
// of a multiprocessor.
#ifndef LLTM_SEQUENCE_GRID_SHAPES_CUH_
#define LLTM_SEQUENCE_GRID_SHAPES_CUH_

#include <cuda_runtime.h>

#include "sequence_cluster.cuh"
#include "sequence_gradient.cuh"
#include "sequence_grid_parts.cuh"

namespace lltm {
namespace {

template <typename Format, typename Storage, int kUnits_, int kRows_, int kChunks_,
          int kInRegisters_, int kDepth_, int kWarps_, int kCluster_, bool kOneGroup_,
          int kSideBySide_ = 1>
struct ForwardShape {
  typedef Format Numbers;
  typedef Storage S;
  static const int kUnits = kUnits_;
  static const int kRows = kRows_;
  static const int kChunks = kChunks_;
  static const int kInRegisters = kInRegisters_;
  static const int kDepth = kDepth_;
  static const int kWarps = kWarps_;
  static const bool kOneGroup = kOneGroup_;
  static const int kCluster = kCluster_;
  static const int kThreads = 32 * kWarps;
  static const int kSideBySide = kSideBySide_;
  typedef lltm::Item<kUnits, kRows, kThreads> Item;
  // Whether a thread that fetches has the item that it fetches for in place of its own: that takes
  // fewer registers going forward, and more going backward.
  static const bool kOneItem = true;
  // Whether the weights are read a chunk at a time, or straight on.
  static const bool kByChunks = false;
  static const int kGates = 3;
  static const int kShared = kChunks - kInRegisters;
  static const int kPadded = kCluster * kWarps * kChunks * 4 * Format::kRun;
  static_assert(kPadded % (kUnits * kCluster) == 0, "whole clusters");
  typedef lltm::PartialSums<ComputeType<S>, kCluster * kUnits, kRows, kGates, kWarps> PartialSums;
  // Exchanged, of a unit of a row.
  static const int kBytes = sizeof(typename Format::Sent) / 2;

  struct Memory {
    LaneUnits<typename Format::Units> weights[kShared > 0 ? kWarps : 1][kShared > 0 ? kShared : 1]
                                             [kGates * kCluster * kUnits / 16];
    PartialSums sums;
    Pair<S> gates[kCopiesAhead + 1][3][Item::kCount];
    typename Vector<ComputeType<S>>::Two bias[3][kUnits / 2];
    PartnerSums<kCluster, typename Vector<ComputeType<S>>::Two, Item::kCount, kGates, kOneGroup>
        partner;
    unsigned largest;
    int lengths[kOneGroup ? kRows : kMostTurns * kRows];
    volatile int failed[2];  // whether a block did not come, by the parity of the count
    typename Vector<ComputeType<S>>::Two states[1];  // the cells, of every turn kCount
  };
  static size_t memory_bytes(int turns) {
    return sizeof(Memory) + (turns * Item::kCount - 1) * sizeof(Memory::states);
  }
};

template <typename Format, typename Storage, int kUnits_, int kRows_, int kChunks_,
          int kInRegisters_, int kDepth_, int kWarps_, int kCluster_, bool kOneGroup_>
struct BackwardShape {
  typedef Format Numbers;
  typedef Storage S;
  static const int kUnits = kUnits_;
  static const int kRows = kRows_;
  static const int kChunks = kChunks_;
  static const int kInRegisters = kInRegisters_;
  static const int kDepth = kDepth_;
  static const int kWarps = kWarps_;
  static const bool kOneGroup = kOneGroup_;
  static const int kCluster = kCluster_;
  static const int kThreads = 32 * kWarps;
  static const int kSideBySide = 1;
  typedef lltm::Item<kUnits, kRows, kThreads> Item;
  static const bool kOneItem = false;
  // Runs of eight take many instructions: so many of them straight on take longer to fetch.
  static const bool kByChunks = Format::kRun == 8 && kChunks * kCluster * kUnits / 16 > 9;
  static const int kGates = 1;
  static const int kShared = kChunks - kInRegisters;
  static const int kPadded = kCluster * kWarps * kChunks * 4 * Format::kRun / 3;
  static const int kBytes = 3 * 16 / Format::kRun;
  static_assert(kPadded % (kUnits * kCluster) == 0, "whole clusters");

  typedef lltm::PartialSums<ComputeType<S>, kCluster * kUnits, kRows, kGates, kWarps> PartialSums;

  // In shared memory, by cp.async
  enum { kInput, kOutput, kCandidate, kCell, kGrad, kSaved };

  // Whether a thread keeps the position that it copies for. Of so many units and rows the weights
  // and the sums fill the registers, and it computes it anew.
  static const bool kKeepsAhead = kUnits != 16 || kRows != 16 || sizeof(ComputeType<S>) == 8;
  // Whether one thread prepares what another one needs.
  static const bool kHandsOver = Item::kFirstFetcher > 0;

  struct Memory {
    LaneUnits<typename Format::Units> weights[kShared > 0 ? kWarps : 1][kShared > 0 ? kShared : 1]
                                             [kCluster * kUnits / 16];
    PartialSums sums;
    Pair<S> saved[kCopiesAhead + 1][kSaved][Item::kCount];
    CoefficientPairs<ComputeType<S>, kHandsOver ? Item::kCount : 1> prepared[2];
    PartnerSums<kCluster, typename Vector<ComputeType<S>>::Two, Item::kCount, kGates, kOneGroup>
        partner;
    int lengths[kOneGroup ? kRows : kMostTurns * kRows];
    volatile int failed[2];  // whether a block did not come, by the parity of the count
    typename Vector<ComputeType<S>>::Two states[1];  // d_cell, of every turn kCount
  };
  static size_t memory_bytes(int turns) {
    return sizeof(Memory) + (turns * Item::kCount - 1) * sizeof(Memory::states);
  }
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_SHAPES_CUH_
