#ifndef SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_
#define SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_

#include <cstdint>
#include <functional>

namespace sfmamba {

// Runs `fn` and returns the most bytes of the heap that this thread had
// allocated at a time since its start and not freed, those of all libraries
// included. A test that links this uses malloc() and its kin through it.
int64_t PeakOfHeap(const std::function<void()>& fn);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_
