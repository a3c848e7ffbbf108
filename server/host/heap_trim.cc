#include "server/host/heap_trim.h"

#include <algorithm>

namespace sfmamba::server {

void HeapTrim::Look(const MemoryBudget::Peak& received) {
  const MemoryBudget::Peak peak = memory_.TakePeak();
  after_peak_ = after_peak_ || std::max(peak.most, received.most) >= kPeak;
  if (!after_peak_ || peak.now + received.now > kPeak / 4) return;
  after_peak_ = false;
  trim_();
}

}  // namespace sfmamba::server
