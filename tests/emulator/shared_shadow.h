#ifndef SFMAMBA_TESTS_EMULATOR_SHARED_SHADOW_H_
#define SFMAMBA_TESTS_EMULATOR_SHARED_SHADOW_H_

#include <cstdint>
#include <vector>

#include "tests/emulator/grid.h"

namespace sfmamba::simt {

// Who touched each element of an array in shared memory, so that an access that
// nothing orders after another thread's is found, whatever order the threads
// ran in. Accesses are ordered by __syncthreads and, in a warp, __syncwarp.
//
// Each call is an access by the running thread; what is wrong ends the grid.
class SharedShadow {
 public:
  explicit SharedShadow(int size) : elements_(size) {}

  void Read(int i);
  void Write(int i);
  // Atomic operations do not race with each other.
  void Atomic(int i);

 private:
  // Accesses of one kind to one element in one epoch: all of one warp, and one
  // of the others, which is enough to know that any thread is unordered.
  struct Accesses {
    uint64_t epoch = 0;
    int warp = 0;
    int other = -1;              // A thread of another warp; -1: none.
    uint32_t times[kWarp] = {};  // The latest of each lane; 0: none.

    void Add(const Thread& thread);
    // A thread whose access nothing orders before `thread`, or -1.
    int Unordered(const Thread& thread) const;
  };
  struct Element {
    uint64_t written = 0;  // The epoch of the latest write.
    Accesses reads, writes, atomics;
  };

  Element& At(int i);
  void Check(const Accesses& accesses, int i, const char* now,
             const char* before) const;

  std::vector<Element> elements_;
};

}  // namespace sfmamba::simt

#endif  // SFMAMBA_TESTS_EMULATOR_SHARED_SHADOW_H_
