#include "server/batching/batch_limits.h"

#include <algorithm>

namespace sfmamba::batching {

size_t BatchLimits::Allowed(const Size& size, size_t wanted) const {
  absl::MutexLock lock(&mu_);
  const auto it = limits_.find(size);
  return it == limits_.end() ? wanted : std::min(wanted, it->second);
}

void BatchLimits::Halve(const Size& size, size_t images) {
  absl::MutexLock lock(&mu_);
  const auto [it, added] = limits_.emplace(size, images / 2);
  if (!added) it->second = std::min(it->second, images / 2);
}

}  // namespace sfmamba::batching
