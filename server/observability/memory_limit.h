#ifndef SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace sfmamba::observability {

// Returns the number of bytes that this process may use. It is the smallest of
// the machine's memory and the limits of the control group (version 1 or 2) and
// of the group's ancestors. Returns 0 if no limit is known. `root` replaces "/"
// in tests.
int64_t MemoryLimit(const std::string& root = "");

// Returns the number of bytes that this process may still allocate. The number
// is the limit minus the resident memory minus the `kept` bytes reserved for
// other uses. It is at most the machine's available memory. Returns the largest
// int64_t if neither limit is known. May be negative.
int64_t FreeMemory(int64_t kept = 0, const std::string& root = "");

// Returns this process's resident memory in bytes, or 0 if it is unknown.
int64_t ResidentMemory();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
