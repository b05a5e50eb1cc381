// Runs kernels: a block after the other, and in it a thread after the other, each on a stack of its
// own until it waits. See cuda_runtime.h.
#include "cuda_runtime.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <memory>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {
namespace {

const unsigned kWarp = 32;
const size_t kStack = 256 * 1024;

enum class Wait { kNothing, kWarp, kBlock, kEnd };

struct Thread {
  Wait wait = Wait::kNothing;
  bool started = false;
  int distance = 0;            // of the exchange that it waits for
  unsigned exchanges = 0;      // so far
  unsigned char given[2][24];  // in the last two: a lane may be one ahead of another
  ucontext_t first;
  jmp_buf later;
  std::unique_ptr<char[]> stack{new char[kStack]};
};

std::vector<std::unique_ptr<Thread>> threads;
Thread* current;
jmp_buf scheduler;
void (*call_kernel)(const void*);
const void* kernel;
std::vector<void*> entered;        // arrays in shared memory, by this block
std::pair<char*, size_t> dynamic;  // memory in it, of a size
cudaError_t last_error = cudaSuccess;
int processors = 1;
int capability = 9;  // major
unsigned launches = 0;
volatile sig_atomic_t fault = 0;
bool backwards = false;

// It lives on: the next block's thread of this number begins where the last one's ended.
void run_thread() {
  for (;;) {
    call_kernel(kernel);
    current->wait = Wait::kEnd;
    if (_setjmp(current->later) == 0) _longjmp(scheduler, 1);
  }
}

void wait(Wait what) {
  current->wait = what;
  if (_setjmp(current->later) == 0) _longjmp(scheduler, 1);
}

// Until it waits.
void resume(unsigned index) {
  threadIdx.x = index;
  current = threads[index].get();
  current->wait = Wait::kNothing;
  if (_setjmp(scheduler) != 0) return;
  if (current->started) _longjmp(current->later, 1);
  current->started = true;
  getcontext(&current->first);
  current->first.uc_stack.ss_sp = current->stack.get();
  current->first.uc_stack.ss_size = kStack;
  makecontext(&current->first, run_thread, 0);
  setcontext(&current->first);
}

bool fail(const char* what) {
  fprintf(stderr, "emulated kernel, block %u, thread %u: %s\n", blockIdx.x, threadIdx.x, what);
  last_error = cudaErrorLaunchFailure;
  threads.clear();  // with the stacks that it leaves behind
  return false;
}

// On the stack of the thread that did it, which is then left behind.
void on_fault(int signal) {
  fault = signal;
  _longjmp(scheduler, 1);
}

// While kernels run, what they must not do is a failure of theirs, and not the end of the process.
class FaultsCaught {
 public:
  FaultsCaught() {
    struct sigaction mine = {};
    mine.sa_handler = on_fault;
    mine.sa_flags = SA_NODEFER;
    for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &mine, &before[i]);
    fault = 0;
  }
  ~FaultsCaught() {
    for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &before[i], nullptr);
  }

 private:
  static constexpr int kCount = 4;
  static constexpr int kSignals[kCount] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP};
  struct sigaction before[kCount];
};

// The nth of some. What no barrier orders must not matter: in three launches of five the last
// block, warp and lane come first. Of five, because a function may launch up to four kernels.
unsigned nth(unsigned n, unsigned count) { return backwards ? count - 1 - n : n; }

// A warp, until all its threads wait for the block or have ended.
bool run_warp(unsigned first, unsigned count) {
  for (;;) {
    unsigned waiting = 0;
    for (unsigned n = 0; n < count; ++n) {
      const unsigned index = first + nth(n, count);
      if (threads[index]->wait == Wait::kNothing) resume(index);
      if (fault == SIGILL || fault == SIGTRAP) return fail("an index beyond an array");
      if (fault) return fail("an address outside of the arrays");
      waiting += threads[index]->wait == Wait::kWarp;
    }
    if (waiting == 0) return true;
    if (waiting < count) return fail("not all threads of a warp come to a shuffle");
    for (unsigned i = 0; i < count; ++i) {
      if (threads[first + i]->distance != threads[first]->distance) {
        return fail("the threads of a warp come to different shuffles");
      }
      threads[first + i]->wait = Wait::kNothing;
    }
  }
}

bool run_block(unsigned count) {
  entered.clear();
  while (threads.size() < count) threads.emplace_back(new Thread);
  for (unsigned i = 0; i < count; ++i) threads[i]->wait = Wait::kNothing;
  const unsigned warps = (count + kWarp - 1) / kWarp;
  for (;;) {
    for (unsigned n = 0; n < warps; ++n) {
      const unsigned first = nth(n, warps) * kWarp;
      if (!run_warp(first, count - first < kWarp ? count - first : kWarp)) return false;
    }
    unsigned ended = 0;
    for (unsigned i = 0; i < count; ++i) ended += threads[i]->wait == Wait::kEnd;
    if (ended == count) return true;
    if (ended > 0) return fail("not all threads of a block come to a barrier");
    for (unsigned i = 0; i < count; ++i) threads[i]->wait = Wait::kNothing;
  }
}

void make_dynamic(size_t size) {
  const size_t page = 1 << 16;  // of any system
  const size_t room = (size + page - 1) / page * page;
  void* const pages =
      mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + room, page, PROT_NONE)) abort();
  dynamic = {static_cast<char*>(pages) + room - size, size};
}

}  // namespace

void run_blocks(dim3 blocks, unsigned count, size_t shared, void (*call)(const void*),
                const void* of) {
  call_kernel = call;
  kernel = of;
  const FaultsCaught caught;
  backwards = launches++ % 5 % 4 != 0;
  gridDim = blocks;
  blockDim.x = count;
  if (shared != dynamic.second) make_dynamic(shared);
  const unsigned all = blocks.x * blocks.y;
  for (unsigned n = 0; n < all; ++n) {
    blockIdx.x = nth(n, all) % blocks.x;
    blockIdx.y = nth(n, all) / blocks.x;
    if (!run_block(count)) return;
  }
}

void enter_shared(void* array, size_t size, int byte) {
  for (void* const other : entered) {
    if (other == array) return;
  }
  entered.push_back(array);
  memset(array, byte, size);
}

void* dynamic_shared() {
  enter_shared(dynamic.first, dynamic.second, 0x7b);
  return dynamic.first;
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
  return threads[thread]->given[turn];
}

void exchange(const void* from, void* to, size_t size, int distance) {
  const unsigned turn = give_to_warp(from, size, distance);
  memcpy(to, given_by(threadIdx.x ^ static_cast<unsigned>(distance), turn), size);
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
  return cudaSuccess;
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
}
