// Runs kernels: a block after the other, or all of them in turns, and in it a thread after the
// other, each on a stack of its own until it waits. See cuda_runtime.h.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "threads.h"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

Block* block;
Thread* current;
unsigned launches = 0;
cudaError_t last_error = cudaSuccess;

namespace {

Block alone;  // of launches that run a block after the other
jmp_buf scheduler;
void (*call_kernel)(const void*);
const void* kernel;
volatile sig_atomic_t fault = 0;
bool backwards = false;

// It lives on: the next block's thread of this number begins where the last one's ended.
void run_thread() {
  for (;;) {
    call_kernel(kernel);
    wait(Wait::kEnd);
  }
}

// Until it waits.
void resume(unsigned index) {
  threadIdx.x = index;
  current = block->threads[index].get();
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
  block->threads.clear();  // with the stacks that it leaves behind
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

// A warp, until all its threads wait for the block, or for their next turn, or have ended.
bool run_warp(unsigned first, unsigned count) {
  const auto& threads = block->threads;
  for (unsigned i = 0; i < count; ++i) {
    if (threads[first + i]->wait == Wait::kTurn) threads[first + i]->wait = Wait::kNothing;
  }
  for (;;) {
    unsigned waiting = 0, later = 0;
    for (unsigned n = 0; n < count; ++n) {
      const unsigned index = first + nth(n, count);
      if (threads[index]->wait == Wait::kNothing) resume(index);
      if (fault == SIGILL || fault == SIGTRAP) return fail("an index beyond an array");
      if (fault) return fail("an address outside of the arrays");
      waiting += threads[index]->wait == Wait::kWarp;
      later += threads[index]->wait == Wait::kTurn;
    }
    if (waiting == 0 || later > 0) return true;
    if (waiting < count) return fail("not all threads of a warp come to a shuffle");
    for (unsigned i = 0; i < count; ++i) {
      if (threads[first + i]->distance != threads[first]->distance) {
        return fail("the threads of a warp come to different shuffles");
      }
      threads[first + i]->wait = Wait::kNothing;
    }
  }
}

void begin_block(Block* one, unsigned count) {
  block = one;
  block->ended = false;
  block->entered.clear();
  while (block->threads.size() < count) block->threads.emplace_back(new Thread);
  for (unsigned i = 0; i < count; ++i) {
    block->threads[i]->wait = Wait::kNothing;
    block->threads[i]->copies.assign(1, {});
  }
}

// As far as the next barrier, or until its threads wait for another block.
bool run_on(unsigned count) {
  const auto& threads = block->threads;
  const unsigned warps = (count + kWarp - 1) / kWarp;
  for (unsigned n = 0; n < warps; ++n) {
    const unsigned first = nth(n, warps) * kWarp;
    if (!run_warp(first, count - first < kWarp ? count - first : kWarp)) return false;
  }
  unsigned ended = 0, at_barrier = 0;
  for (unsigned i = 0; i < count; ++i) {
    ended += threads[i]->wait == Wait::kEnd;
    at_barrier += threads[i]->wait == Wait::kBlock;
  }
  block->ended = ended == count;
  if (ended + at_barrier < count || block->ended) return true;
  if (ended > 0) return fail("not all threads of a block come to a barrier");
  for (unsigned i = 0; i < count; ++i) threads[i]->wait = Wait::kNothing;
  return true;
}

void make_dynamic(size_t size) {
  const size_t page = 1 << 16;  // of any system
  const auto pages_of = [](size_t bytes) { return (bytes + page - 1) / page * page; };
  size = (size + 15) / 16 * 16;  // so are its addresses
  const auto before = block->dynamic;
  if (size == before.second) return;
  if (before.first) {
    const size_t room = pages_of(before.second);
    munmap(before.first + before.second - room, room + page);
  }
  const size_t room = pages_of(size);
  void* const pages =
      mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + room, page, PROT_NONE)) abort();
  block->dynamic = {static_cast<char*>(pages) + room - size, size};
}

void begin_launch(dim3 blocks, unsigned count, void (*call)(const void*), const void* of) {
  call_kernel = call;
  kernel = of;
  backwards = launches++ % 5 % 4 != 0;
  gridDim = blocks;
  blockDim.x = count;
}

}  // namespace

void wait(Wait what) {
  current->wait = what;
  if (_setjmp(current->later) == 0) _longjmp(scheduler, 1);
}

void run_blocks(dim3 blocks, unsigned count, size_t shared, void (*call)(const void*),
                const void* of) {
  const FaultsCaught caught;
  begin_launch(blocks, count, call, of);
  block = &alone;
  make_dynamic(shared);
  const unsigned all = blocks.x * blocks.y;
  for (unsigned n = 0; n < all; ++n) {
    blockIdx.x = nth(n, all) % blocks.x;
    blockIdx.y = nth(n, all) / blocks.x;
    for (begin_block(&alone, count); !block->ended;) {
      if (!run_on(count)) return;
    }
  }
}

void run_together(dim3 blocks, unsigned count, size_t shared, void (*call)(const void*),
                  const void* of) {
  static std::vector<std::unique_ptr<Block>> grid;
  const FaultsCaught caught;
  begin_launch(blocks, count, call, of);
  while (grid.size() < blocks.x) grid.emplace_back(new Block);
  for (unsigned n = 0; n < blocks.x; ++n) {
    begin_block(grid[n].get(), count);
    make_dynamic(shared);
  }
  for (unsigned ended = 0; ended < blocks.x;) {
    ended = 0;
    for (unsigned n = 0; n < blocks.x; ++n) {
      blockIdx.x = nth(n, blocks.x);
      block = grid[blockIdx.x].get();
      if (!block->ended && !run_on(count)) return grid.clear();
      ended += block->ended;
    }
  }
}

}  // namespace emulated
