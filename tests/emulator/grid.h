#ifndef SFMAMBA_TESTS_EMULATOR_GRID_H_
#define SFMAMBA_TESTS_EMULATOR_GRID_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

// CUDA's type of the same name.
struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};

// The emulator executes a grid. Blocks run one after another in random order.
// Each thread of a block is a fibre, which runs until it must wait for others.
// The next thread is then chosen at random. A seed determines all orders.
namespace sfmamba::simt {

constexpr int kWarp = 32;

// Sets the next grid's seed, which is initially 1. The seed of each later grid
// is one more. Error messages contain the seed, so that an error can be
// reproduced.
void SetSeed(uint64_t seed);

// Runs `kernel` once for each thread of the grid. Returns INTERNAL if the
// launch exceeds a limit of the hardware or if the threads do something that is
// undefined in CUDA. The error names the kernel, the block and the threads.
// After an error, some threads may not have run. Concurrent calls run one after
// another.
absl::Status RunGrid(const std::string& name, dim3 blocks, dim3 threads,
                     const std::function<void()>& kernel);

// ---- For a kernel's running thread, within RunGrid() ----

struct Thread {
  dim3 index, block, block_size, grid_size;
  int rank;  // The thread's index in its block.
  int lane, warp;

  // The following fields detect races. `time` is 1 when the block starts. It
  // increases at each __syncwarp of the thread. seen[i] is a time of lane i of
  // the thread's warp. The accesses of lane i up to this time happened before
  // the thread's next access. Later accesses of lane i are not ordered.
  uint32_t time;
  uint32_t seen[kWarp];
};

const Thread& Running();

// Returns a counter that increases whenever a block starts and at each
// __syncthreads. It is never reset.
uint64_t Epoch();
uint64_t FirstEpochOfBlock();

// Ends the grid with an error.
[[noreturn]] void Fail(const std::string& message);

// Returns the name of a thread of the running block, such as "thread 5" or
// "thread (1,2,3)".
std::string NameOf(int rank);

void SyncThreads(int line);

// Waits until the lanes of `mask` call this with the same operation, mask and
// line. Returns the `value` of lane `source`, which must be one of them.
uint64_t Exchange(const char* operation, unsigned mask, uint64_t value,
                  int source, int line);

// Waits like Exchange(). Returns a bit for each lane. The bit is set if the
// lane's `on` is true.
unsigned Ballot(const char* operation, unsigned mask, bool on, int line);

// Waits like Exchange() and orders accesses to shared memory.
void SyncWarp(unsigned mask, int line);

// Lets other threads run before an atomic operation.
void Yield();

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_GRID_H_
