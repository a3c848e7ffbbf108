#ifndef SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_
#define SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_

#include <cstdint>
#include <functional>

namespace sfmamba {

// Runs `fn` and returns the peak of this thread's heap allocations during the
// run, in bytes. Includes allocations by libraries. A test that links this
// library uses its malloc() and related functions.
int64_t PeakOfHeap(const std::function<void()>& fn);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_ALLOCATIONS_H_
