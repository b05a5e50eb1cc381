// The threads and blocks that emulation.cpp runs, for what they wait for.
#ifndef LLTM_EMULATED_THREADS_H_
#define LLTM_EMULATED_THREADS_H_

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

namespace emulated {

const unsigned kWarp = 32;
const size_t kStack = 256 * 1024;

enum class Wait { kNothing, kTurn, kWarp, kBlock, kEnd };

struct Copy {
  char* to;
  const void* from;
  int size;
};

struct Thread {
  Wait wait = Wait::kNothing;
  bool started = false;
  int distance = 0;                          // of the exchange that it waits for
  unsigned exchanges = 0;                    // so far
  unsigned char given[2][24];                // in the last two: a lane may be one ahead of another
  std::vector<std::vector<Copy>> copies{1};  // groups of them that nobody waited for
  ucontext_t first;
  jmp_buf later;
  std::unique_ptr<char[]> stack{new char[kStack]};
};

struct Block {
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<void*> entered;          // arrays in shared memory
  std::pair<char*, size_t> dynamic{};  // memory in it, of a size
  bool ended = false;
};

extern Block* block;     // that runs
extern Thread* current;  // and of it
extern unsigned launches;
extern cudaError_t last_error;

// Lets others run.
void wait(Wait what);

}  // namespace emulated

#endif  // LLTM_EMULATED_THREADS_H_
