#ifndef SFMAMBA_TESTS_EMULATOR_GRID_H_
#define SFMAMBA_TESTS_EMULATOR_GRID_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

// CUDA's type, with CUDA's name.
struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};

// The emulator's execution of a grid. Blocks run one after another in random
// order. Each thread of a block is a fibre that runs until it must wait for
// others; the next thread is chosen at random. A seed determines all orders.
namespace sfmamba::simt {

constexpr int kWarp = 32;

// Sets the next grid's seed, initially 1. Each later grid adds 1. Error
// messages contain the seed that reproduces them.
void SetSeed(uint64_t seed);

// Runs `kernel` once for each thread of the grid. INTERNAL, naming the kernel,
// the block and the threads, if the launch exceeds a limit of the hardware or
// the threads do what CUDA leaves undefined; the grid is then incomplete.
// Concurrent calls run one after another.
absl::Status RunGrid(const std::string& name, dim3 blocks, dim3 threads,
                     const std::function<void()>& kernel);

// ---- For the running thread of a kernel, within RunGrid() ----

struct Thread {
  dim3 index, block, block_size, grid_size;
  int rank;  // The thread's index in its block.
  int lane, warp;

  // These detect races. `time` counts the thread's __syncwarp calls. seen[lane]
  // is the latest time of that lane of the warp that happened before now.
  uint32_t time;
  uint32_t seen[kWarp];
};

const Thread& Running();

// Returns a counter that increases at each start of a block and at each
// __syncthreads, and is never reset.
uint64_t Epoch();
uint64_t FirstEpochOfBlock();

// Ends the grid with an error.
[[noreturn]] void Fail(const std::string& message);

// Returns the name of a thread of the running block: "thread 5" or "thread
// (1,2,3)".
std::string NameOf(int rank);

void SyncThreads(int line);

// Waits until the lanes of `mask` call this with the same operation, mask and
// line. Returns the `value` of lane `source`, which must be one of them.
uint64_t Exchange(const char* operation, unsigned mask, uint64_t value,
                  int source, int line);

// Waits like Exchange(). Returns a bit for each lane, set if its `on` is true.
unsigned Ballot(const char* operation, unsigned mask, bool on, int line);

// Waits like Exchange() and orders accesses to shared memory.
void SyncWarp(unsigned mask, int line);

// Lets other threads run before an atomic operation.
void Yield();

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_GRID_H_
