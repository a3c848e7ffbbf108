#ifndef SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace sfmamba::observability {

// The bytes that this process may use: the smallest limit of its control group
// (version 1 or 2) and those above it, or else the machine's memory. 0 if
// nothing is known. `root` stands in for "/" in tests.
int64_t MemoryLimit(const std::string& root = "");

// The bytes that this process may still allocate: its limit less what it holds
// and `kept` bytes for other uses, but at most what the machine has available.
// The largest number if neither is known. May be negative.
int64_t FreeMemory(int64_t kept = 0, const std::string& root = "");

// The bytes of RAM that this process holds now; 0 if that is not known.
int64_t ResidentMemory();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
