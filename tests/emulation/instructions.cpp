// What a kernel's threads call, and the host code around it. See cuda_runtime.h.
#include <map>

#include "threads.h"

namespace emulated {
namespace {

long long now = 0;
int processors = 1;
int capability = 9;                         // major
std::map<const void*, size_t> most_shared;  // of a kernel

}  // namespace

void enter_shared(void* array, size_t size, int byte) {
  for (void* const other : block->entered) {
    if (other == array) return;
  }
  block->entered.push_back(array);
  memset(array, byte, size);
}

void* dynamic_shared() {
  enter_shared(block->dynamic.first, block->dynamic.second, 0x7b);
  return block->dynamic.first;
}

void check_alignment(const void* p, size_t size) {
  if (reinterpret_cast<uintptr_t>(p) % size != 0) last_error = cudaErrorMisalignedAddress;
}

void wait_for_block() { wait(Wait::kBlock); }

void wait_for_warp() {
  current->distance = 0;
  wait(Wait::kWarp);
}

unsigned give_to_warp(const void* from, size_t size, int what) {
  const unsigned turn = current->exchanges++ % 2;
  memcpy(current->given[turn], from, size);
  current->distance = what;
  wait(Wait::kWarp);
  return turn;
}

const unsigned char* given_by(unsigned thread, unsigned turn) {
  return block->threads[thread]->given[turn];
}

void exchange(const void* from, void* to, size_t size, int distance) {
  const unsigned turn = give_to_warp(from, size, distance);
  memcpy(to, given_by(threadIdx.x ^ static_cast<unsigned>(distance), turn), size);
}

bool any_of_warp(bool value) {
  const unsigned turn = give_to_warp(&value, sizeof(value), -3);
  bool any = false;
  for (unsigned i = 0; i < kWarp; ++i) any |= *given_by(threadIdx.x / kWarp * kWarp + i, turn) != 0;
  return any;
}

size_t shared_address(const void* p) { return static_cast<const char*>(p) - block->dynamic.first; }

void copy_async(uint32_t to, const void* from, int size) {
  check_alignment(from, size);
  current->copies.back().push_back({block->dynamic.first + to, from, size});
}
void end_copies() { current->copies.emplace_back(); }
void wait_for_copies(int left) {
  auto& groups = current->copies;
  while (groups.size() > left + 1u) {
    for (const Copy& copy : groups.front()) memcpy(copy.to, copy.from, copy.size);
    groups.erase(groups.begin());
  }
}

unsigned ticks() { return static_cast<unsigned>(now += 40); }
long long ticks_of_turn() {
  wait(Wait::kTurn);
  return now += 40;
}

}  // namespace emulated

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

// own_architecture() asks only where a file is compiled for a Hopper GPU.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = 0;
  if (attribute == cudaDevAttrMultiProcessorCount) *value = emulated::processors;
  if (attribute == cudaDevAttrComputeCapabilityMajor) *value = emulated::capability;
  if (attribute == cudaDevAttrCooperativeLaunch) *value = 1;
  if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = 227 << 10;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int shared) {
  size_t& most = emulated::most_shared.emplace(kernel, shared).first->second;
  if (static_cast<size_t>(shared) < most) most = static_cast<size_t>(shared);
  return cudaSuccess;
}

bool emulated::may_have(const void* kernel, size_t shared) {
  return shared <= most_shared.emplace(kernel, 48 << 10).first->second;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = emulated::last_error;
  emulated::last_error = cudaSuccess;
  return error;
}

extern "C" void emulated_start(int32_t processors, int32_t capability) {
  emulated::processors = processors;
  emulated::capability = capability;
  emulated::launches = 0;
  emulated::most_shared.clear();
}
