#ifndef SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
#define SFMAMBA_SERVER_HOST_HEAP_TRIM_H_

#include <malloc.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "server/shares/memory_budget.h"

namespace sfmamba::server {

// Gives the heap's free memory back to the system once a peak of what requests
// hold is over: malloc() keeps what is freed between blocks that are in use, so
// that a single large request would be seen in the process's size for ever.
//
// Thread-compatible.
class HeapTrim {
 public:
  // A peak holds at least this, in bytes; it is over when a quarter of it is
  // left.
  static constexpr int64_t kPeak = 64 << 20;
  // How often the heap is trimmed after a peak: gRPC frees what a connection
  // had received some time after it was closed.
  static constexpr int kTrims = 2;

  // `memory` outlives this. `trim` gives the memory back: by default it is
  // malloc_trim(), which takes some milliseconds.
  explicit HeapTrim(
      MemoryBudget* memory, std::function<void()> trim = [] { malloc_trim(0); })
      : memory_(*memory), trim_(std::move(trim)) {}

  // To be called again and again, with some time between the calls.
  void Look();

 private:
  MemoryBudget& memory_;
  const std::function<void()> trim_;
  int trims_left_ = 0;  // After the last peak.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_HEAP_TRIM_H_
