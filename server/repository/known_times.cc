#include "server/repository/known_times.h"

namespace sfmamba::repository {

KnownTimes::Times KnownTimes::Get(absl::string_view key) const {
  absl::MutexLock lock(&mu_);
  for (const auto& [known, times] : known_) {
    if (known == key) return times;
  }
  return {};
}

void KnownTimes::Set(const std::string& key, Times times) {
  absl::MutexLock lock(&mu_);
  known_.remove_if([&](const auto& known) { return known.first == key; });
  known_.emplace_front(key, std::move(times));
  if (known_.size() > kMostKeys) known_.pop_back();
}

}  // namespace sfmamba::repository
