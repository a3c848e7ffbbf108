#ifndef SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

namespace sfmamba::observability {

// Returns the number of bytes that this process may use. This is the minimum of
// the machine's memory, the limit of the process's control group (version 1 or
// 2), and the limits of the group's ancestors. Returns 0 if no limit is known.
// `root` replaces "/" in tests.
int64_t MemoryLimit(const std::string& root = "");

// Returns the number of bytes that this process may still allocate. This is
// MemoryLimit() minus the resident memory minus `kept`, the bytes reserved for
// other uses. The result is at most the machine's available memory. The result
// may be negative. If neither the limit nor the available memory is known,
// returns the largest int64_t.
int64_t FreeMemory(int64_t kept = 0, const std::string& root = "");

// Returns this process's resident memory in bytes, or 0 if it is unknown.
int64_t ResidentMemory();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_MEMORY_LIMIT_H_
