#include "server/host/heap_trim.h"

#include <algorithm>

namespace sfmamba::server {

void HeapTrim::Look(const MemoryBudget::Peak& received) {
  const MemoryBudget::Peak peak = memory_.TakePeak();
  if (std::max(peak.most, received.most) >= kPeak) trims_left_ = kTrims;
  if (trims_left_ == 0 || peak.now + received.now > kPeak / 4) return;
  --trims_left_;
  trim_();
}

}  // namespace sfmamba::server
