#ifndef SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
#define SFMAMBA_SERVER_HOST_HEAP_TRIM_H_

#include <malloc.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "server/shares/memory_budget.h"

namespace sfmamba::server {

// Returns free heap memory to the operating system after a peak of request
// memory. malloc() keeps freed memory if later blocks are still in use. Without
// trimming, a single large request could enlarge the process permanently.
//
// Thread-compatible.
class HeapTrim {
 public:
  // A peak begins when requests hold at least this many bytes. The peak ends
  // when requests hold at most a quarter of kPeak.
  static constexpr int64_t kPeak = 64 << 20;
  // The number of trims after a peak. A single trim is not enough, because gRPC
  // frees a closed connection's data some time later.
  static constexpr int kTrims = 2;

  // `memory` shows how many bytes requests hold, and must outlive this object.
  // `trim` returns free memory to the system. The default, malloc_trim(), takes
  // a few milliseconds.
  explicit HeapTrim(
      MemoryBudget* memory, std::function<void()> trim = [] { malloc_trim(0); })
      : memory_(*memory), trim_(std::move(trim)) {}

  // Trims the heap if a peak has ended. Callers must call this function
  // periodically.
  void Look();

 private:
  MemoryBudget& memory_;
  const std::function<void()> trim_;
  int trims_left_ = 0;  // The remaining trims after a peak.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
