#ifndef SFMAMBA_TESTS_EMULATOR_SHARED_SHADOW_H_
#define SFMAMBA_TESTS_EMULATOR_SHARED_SHADOW_H_

#include <cstdint>
#include <vector>

#include "tests/emulator/grid.h"

namespace sfmamba::simt {

// Detects races in an array in shared memory. It records which threads accessed
// each element. Conflicting accesses are a race if they are not ordered by
// __syncthreads or, within a warp, by __syncwarp. A race is found even if the
// threads happen to run in an order in which the race does no harm.
//
// Each call of a method is an access by the running thread. A race ends the
// grid with an error.
class SharedShadow {
 public:
  explicit SharedShadow(int size) : elements_(size) {}

  void Read(int i);
  void Write(int i);
  // Atomic operations do not race with each other.
  void Atomic(int i);

 private:
  // The accesses of one kind to one element in one epoch. Stores the latest
  // access of each lane of `warp`, which is the first warp that accessed the
  // element. Stores only one access of all other warps, because accesses of
  // different warps are never ordered within an epoch. If the next access is by
  // `warp`, it is not ordered after this access. If it is by another warp, it
  // is not ordered after the accesses by `warp`.
  struct Accesses {
    uint64_t epoch = 0;
    int warp = 0;
    int other = -1;              // A thread of another warp, or -1.
    uint32_t times[kWarp] = {};  // Each lane's latest access, or 0.

    void Add(const Thread& thread);
    // Returns a thread whose access is not ordered before the access of
    // `thread`. Returns -1 if there is none.
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
