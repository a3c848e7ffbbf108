#ifndef SFMAMBA_TESTS_EMULATOR_GRID_H_
#define SFMAMBA_TESTS_EMULATOR_GRID_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

// CUDA's own name.
struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};

// How the emulator runs a grid: its blocks one after another in random order,
// each thread of a block as a fibre until it must wait for others, the next
// one chosen at random. The orders follow from a seed.
namespace sfmamba::simt {

constexpr int kWarp = 32;

// The next grid's seed; each later grid adds 1. It starts at 1. Errors name
// the seed that repeats them.
void SetSeed(uint64_t seed);

// Runs `kernel` once for each thread. INTERNAL, naming the kernel, the block
// and the threads, if the launch exceeds a limit of the hardware or if the
// threads do what CUDA leaves undefined: then the grid is left half done.
// Grids of other threads wait.
absl::Status RunGrid(const std::string& name, dim3 blocks, dim3 threads,
                     const std::function<void()>& kernel);

// ---- For the running thread of a kernel, that is below RunGrid() ----

struct Thread {
  dim3 index, block, block_size, grid_size;
  int rank;  // In its block.
  int lane, warp;

  // For races. `time` counts the thread's own __syncwarp; seen[lane] is the
  // latest time of each lane of its warp that happened before now.
  uint32_t time;
  uint32_t seen[kWarp];
};

const Thread& Running();

// Counts up at each start of a block and each __syncthreads, and never starts
// again.
uint64_t Epoch();
uint64_t FirstEpochOfBlock();

// Ends the grid with an error.
[[noreturn]] void Fail(const std::string& message);

// "thread 5" or "thread (1,2,3)" of the running block.
std::string NameOf(int rank);

void SyncThreads(int line);

// Waits until the lanes of `mask` call this with the same operation, mask and
// line. Returns the `value` of lane `source`, which must be one of them.
uint64_t Exchange(const char* operation, unsigned mask, uint64_t value,
                  int source, int line);

// Waits like Exchange(); returns one bit for each lane that is `on`.
unsigned Ballot(const char* operation, unsigned mask, bool on, int line);

// Waits like Exchange(); orders accesses to shared memory.
void SyncWarp(unsigned mask, int line);

// Lets other threads run before an atomic operation.
void Yield();

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_GRID_H_
