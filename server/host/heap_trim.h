#ifndef SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
#define SFMAMBA_SERVER_HOST_HEAP_TRIM_H_

#include <malloc.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "server/shares/memory_budget.h"

namespace sfmamba::server {

// Returns free heap memory to the operating system after a peak of request
// memory. Without trimming, malloc() keeps freed memory if a block at a higher
// address is still in use. A single large request could then enlarge the
// process permanently.
//
// Thread-compatible.
class HeapTrim {
 public:
  // A peak begins when requests hold at least this many bytes. The peak ends
  // when requests hold at most a quarter of kPeak.
  static constexpr int64_t kPeak = 64 << 20;
  // The number of trims after a peak. Each call of Look() trims at most once. A
  // single trim is not enough, because gRPC frees the data of a connection only
  // some time after the connection has closed.
  static constexpr int kTrims = 2;

  // `memory` shows how many bytes requests hold, and must outlive this object.
  // `trim` returns free memory to the system. The default, malloc_trim(), takes
  // a few milliseconds.
  explicit HeapTrim(
      MemoryBudget* memory, std::function<void()> trim = [] { malloc_trim(0); })
      : memory_(*memory), trim_(std::move(trim)) {}

  // Trims the heap once if a peak has ended and was followed by fewer than
  // kTrims trims. Otherwise does nothing. Must be called periodically.
  void Look();

 private:
  MemoryBudget& memory_;
  const std::function<void()> trim_;
  int trims_left_ = 0;  // The remaining trims after a peak.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
