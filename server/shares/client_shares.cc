#include "server/shares/client_shares.h"

#include <limits>

namespace sfmamba::server {

absl::string_view ClientOf(absl::string_view peer) {
  return peer.substr(0, peer.rfind(':'));
}

ClientShares::ClientShares(double most_alone)
    : times_free_(most_alone < 1 ? most_alone / (1 - most_alone)
                                 : std::numeric_limits<double>::infinity()) {}

bool ClientShares::Take(absl::string_view client, int64_t amount,
                        int64_t free) {
  if (amount <= 0) return true;
  absl::MutexLock lock(&mu_);
  const auto found = held_.find(client);
  const int64_t before = found == held_.end() ? 0 : found->second;
  if (!IsShare(before + amount, free)) return false;
  held_[client] = before + amount;
  return true;
}

void ClientShares::GiveBack(absl::string_view client, int64_t amount) {
  if (amount <= 0) return;
  absl::MutexLock lock(&mu_);
  const auto held = held_.find(client);
  held->second -= amount;
  if (held->second == 0) held_.erase(held);
}

bool ClientShares::IsShare(double amount, double free) const {
  return times_free_ == std::numeric_limits<double>::infinity() ||
         amount <= times_free_ * free;
}

int64_t ClientShares::MostAlone(int64_t all) const {
  if (IsShare(all, 0)) return all;
  const int64_t most = all * (times_free_ / (1 + times_free_));
  // Rounding may have made `most` too large by 1.
  return IsShare(most, all - most) ? most : most - 1;
}

int64_t ClientShares::HeldBy(absl::string_view client) const {
  absl::MutexLock lock(&mu_);
  const auto found = held_.find(client);
  return found == held_.end() ? 0 : found->second;
}

int ClientShares::clients() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(held_.size());
}

}  // namespace sfmamba::server
