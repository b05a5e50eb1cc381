// A kernel of a sequence spread over the GPU as the tables have it, and its cooperative launch.
#ifndef LLTM_SEQUENCE_GRID_KERNEL_CUH_
#define LLTM_SEQUENCE_GRID_KERNEL_CUH_

#include <cuda_runtime.h>

#include "device.cuh"
#include "sequence_grid_backward.cuh"
#include "sequence_grid_forward.cuh"

namespace lltm {
namespace {

// From the meeting of a block until it is best to ask for what the others send, measured.
const int kClocksToSend = 400;

struct GridKernel {
  const void* kernel;
  size_t (*memory_bytes)(int turns);
  int threads;
  int cluster;       // blocks
  int side_by_side;  // blocks of a multiprocessor
  int padded;        // units
  int units;         // of a block
  int rows;          // of a group
  int bytes;         // exchanged, of a unit of a row
  bool has_laps;     // words say of which lap of the ring they are
  int most_turns;    // with more, the next kernel or steps one by one are as fast
  int clocks_to_send;
};

template <typename Shape>
GridKernel grid_kernel(const void* kernel, int most_turns, int clocks_to_send) {
  const int bound = Shape::kCluster > 1 ? kMostTurnsOfCluster : kMostTurns;
  return {kernel,
          &Shape::memory_bytes,
          Shape::kThreads,
          Shape::kCluster,
          Shape::kSideBySide,
          Shape::kPadded,
          Shape::kUnits,
          Shape::kRows,
          Shape::kBytes,
          Shape::Numbers::kLapBit != 0,
          most_turns < bound ? most_turns : bound,
          clocks_to_send};
}

// The kernels of a number format and a type, by units, rows, chunks, those in registers, pieces
// under way and warps. Those in turns are for more than one group of rows a block.
template <typename Format, typename S>
class GridKernels {
  template <typename Shape>
  static GridKernel forward_of(int most_turns, int clocks_to_send) {
    return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_forward_kernel<Shape>),
                              most_turns, clocks_to_send);
  }
  template <typename Shape>
  static GridKernel backward_of(int most_turns, int clocks_to_send) {
    return grid_kernel<Shape>(reinterpret_cast<const void*>(&grid_backward_kernel<Shape>),
                              most_turns, clocks_to_send);
  }

 public:
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel forward(int clocks_to_send = kClocksToSend) {
    return forward_of<
        ForwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 1, true>>(
        1, clocks_to_send);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel forward_in_turns(int most_turns, int clocks_to_send = kClocksToSend) {
    return forward_of<
        ForwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 1, false>>(
        most_turns, clocks_to_send);
  }
  // More blocks than multiprocessors: one multiplies while another one waits.
  template <int kSideBySide, int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth,
            int kWarps = 8>
  static GridKernel forward_side_by_side(int most_turns, int clocks_to_send = kClocksToSend) {
    return forward_of<ForwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps,
                                   1, false, kSideBySide>>(most_turns, clocks_to_send);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel backward(int clocks_to_send = kClocksToSend) {
    return backward_of<
        BackwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 1, true>>(
        1, clocks_to_send);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel backward_in_turns(int most_turns, int clocks_to_send = kClocksToSend) {
    return backward_of<
        BackwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 1, false>>(
        most_turns, clocks_to_send);
  }
  // The same by clusters of two blocks.
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel forward_by_two(int clocks_to_send = kClocksToSend) {
    return forward_of<
        ForwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 2, true>>(
        1, clocks_to_send);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel backward_by_two(int clocks_to_send = kClocksToSend) {
    return backward_of<
        BackwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 2, true>>(
        1, clocks_to_send);
  }
  template <int kUnits, int kRows, int kChunks, int kInRegisters, int kDepth, int kWarps = 8>
  static GridKernel backward_by_two_in_turns(int most_turns, int clocks_to_send = kClocksToSend) {
    return backward_of<
        BackwardShape<Format, S, kUnits, kRows, kChunks, kInRegisters, kDepth, kWarps, 2, false>>(
        most_turns, clocks_to_send);
  }
};

// Of one launch: so many blocks, with so much shared memory each.
class GridKernelLaunch {
 public:
  GridKernelLaunch(const GridKernel& kernel, int blocks, int turns)
      : kernel(kernel), blocks(blocks), memory(kernel.memory_bytes(turns)) {}

  // Whether the GPU has room for all blocks at once; a part of it may lack a processor of a
  // cluster.
  bool has_room() const {
    if (kernel.cluster == 1) return kernel.side_by_side == 1 || fit_side_by_side();
#if CUDART_VERSION >= 12010
    int clusters = 0;
    cudaLaunchAttribute attributes[2] = {};
    const cudaLaunchConfig_t config = configuration(attributes, 1, nullptr);
    return !prepare() &&
           !status_of(cudaOccupancyMaxActiveClusters(&clusters, kernel.kernel, &config)) &&
           clusters * kernel.cluster >= blocks;
#else
    return false;
#endif
  }

  int32_t start(void** parameters, cudaStream_t stream) const {
    const int32_t status = prepare();
    if (status) return status;
#if CUDART_VERSION >= 12010
    if (kernel.cluster > 1) {
      cudaLaunchAttribute attributes[2] = {};
      const cudaLaunchConfig_t config = configuration(attributes, 2, stream);
      return status_of(cudaLaunchKernelExC(&config, kernel.kernel, parameters));
    }
#endif
    return status_of(cudaLaunchCooperativeKernel(kernel.kernel, dim3(static_cast<unsigned>(blocks)),
                                                 dim3(static_cast<unsigned>(kernel.threads)),
                                                 parameters, memory, stream));
  }

 private:
  bool fit_side_by_side() const {
    int count = 0;
    return !prepare() &&
           !status_of(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel.kernel,
                                                                    kernel.threads, memory)) &&
           count >= kernel.side_by_side;
  }

#if CUDART_VERSION >= 12010
  // The first attribute is the cluster's size, the second that the launch is cooperative.
  cudaLaunchConfig_t configuration(cudaLaunchAttribute* attributes, unsigned count,
                                   cudaStream_t stream) const {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = static_cast<unsigned>(kernel.cluster);
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
    // In braces: a constructor of CUDA's would be exported.
    return {dim3(static_cast<unsigned>(blocks)),
            dim3(static_cast<unsigned>(kernel.threads)),
            memory,
            stream,
            attributes,
            count};
  }
#endif

  // The most that a block may have, whatever this launch takes: between this and the launch another
  // thread may launch the kernel with less.
  int32_t prepare() const {
    return status_of(
        cudaFuncSetAttribute(kernel.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)));
  }

  const GridKernel& kernel;
  const int blocks;
  const size_t memory;
};

}  // namespace
}  // namespace lltm

#endif  // LLTM_SEQUENCE_GRID_KERNEL_CUH_
