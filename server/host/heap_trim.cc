#include "server/host/heap_trim.h"

namespace sfmamba::server {

void HeapTrim::Look() {
  const MemoryBudget::Peak peak = memory_.TakePeak();
  if (peak.most >= kPeak) trims_left_ = kTrims;
  if (trims_left_ == 0 || peak.now > kPeak / 4) return;
  --trims_left_;
  trim_();
}

}  // namespace sfmamba::server
