#include "server/host/heap_trim.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

namespace sfmamba::server {

HeapTrim::HeapTrim(MemoryBudget* memory)
    : HeapTrim(memory, [] { malloc_trim(0); }) {}

HeapTrim::HeapTrim(MemoryBudget* memory, std::function<void()> trim)
    : memory_(*memory), trim_(std::move(trim)) {}

void HeapTrim::Look(const MemoryBudget::Peak& received) {
  const MemoryBudget::Peak peak = memory_.TakePeak();
  after_peak_ = after_peak_ || std::max(peak.most, received.most) >= kPeak;
  if (!after_peak_ || peak.now + received.now > kPeak / 4) return;
  after_peak_ = false;
  trim_();
}

}  // namespace sfmamba::server
