#include "server/security/client_quotas.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::security {
namespace {

// The minimum time between two sweeps, which remove idle clients. Each sweep
// takes about a millisecond.
constexpr absl::Duration kSweepPeriod = absl::Seconds(1);
// The maximum number of clients in memory. The number is limited because an
// attacker can use many addresses. Further clients are admitted without quotas.
constexpr size_t kMostClients = 1 << 16;

double BurstOf(const Quota& quota) {
  return quota.burst > 0 ? quota.burst : std::max(1.0, quota.items_per_second);
}

}  // namespace

void ClientQuotas::Bucket::Fill(const Quota& quota, absl::Time now) {
  // The quota may have changed since the last call. The current rate applies to
  // the whole time since the last call. A change of the burst does not change
  // the number of missing tokens.
  rate = quota.items_per_second;
  if (lacking > 0) {
    lacking =
        std::max(0.0, lacking - rate * absl::ToDoubleSeconds(now - updated));
  }
  updated = now;
}

bool ClientQuotas::Client::IsIdle(absl::Time now) const {
  return items == 0 &&
         bucket.lacking <=
             bucket.rate * absl::ToDoubleSeconds(now - bucket.updated);
}

ClientQuotas::Part ClientQuotas::Part::Split(int some_items) {
  items -= some_items;
  return {client, some_items};
}

void ClientQuotas::Sweep(absl::Time now) {
  if (now < next_sweep_) return;
  absl::erase_if(clients_,
                 [now](const auto& c) { return c.second.IsIdle(now); });
  next_sweep_ = now + kSweepPeriod;
}

absl::StatusOr<ClientQuotas::Hold> ClientQuotas::Take(const Caller& caller,
                                                      int items) {
  const Quota& quota = caller.quota;
  const bool has_rate = quota.items_per_second > 0;
  if ((quota.max_items == 0 && !has_rate) || items <= 0) return Hold();
  if (quota.max_items > 0 && items > quota.max_items) {
    return server::OverQuota(caller.name, "images at a time", items,
                             absl::StrCat(quota.max_items),
                             absl::InfiniteDuration());
  }
  const absl::Time now = clock_();
  absl::MutexLock lock(&mu_);
  Sweep(now);
  if (clients_.size() >= kMostClients && !clients_.contains(caller.name)) {
    return Hold();
  }
  Client& client = clients_[caller.name];
  if (quota.max_items > 0 && client.items + items > quota.max_items) {
    return server::OverQuota(caller.name, "images at a time", items,
                             absl::StrCat(quota.max_items),
                             server::kRetryAfter);
  }
  if (has_rate) {
    Bucket& bucket = client.bucket;
    bucket.Fill(quota, now);
    // A request may have more images than the burst. It is then admitted when
    // the bucket is full, and the client waits longer before its next request.
    const double burst = BurstOf(quota);
    const double needed = std::min<double>(items, burst);
    const double missing = bucket.lacking + needed - burst;
    if (missing > 0) {
      return server::OverQuota(caller.name, "images a second", items,
                               absl::StrCat(quota.items_per_second),
                               absl::Seconds(missing / quota.items_per_second));
    }
    bucket.lacking += items;
  }
  client.items += items;
  return Hold(this, {caller.name, items});
}

void ClientQuotas::Refund(Hold hold) {
  absl::MutexLock lock(&mu_);
  const auto found = clients_.find(hold->client);
  if (found == clients_.end()) return;
  double& lacking = found->second.bucket.lacking;
  lacking = std::max(0.0, lacking - hold->items);
}

void ClientQuotas::GiveBack(const Part& part) {
  absl::MutexLock lock(&mu_);
  const auto found = clients_.find(part.client);
  if (found == clients_.end()) return;
  found->second.items -= part.items;
  if (found->second.items == 0 && found->second.bucket.lacking == 0) {
    clients_.erase(found);
  }
}

size_t ClientQuotas::clients() const {
  absl::MutexLock lock(&mu_);
  return clients_.size();
}

}  // namespace sfmamba::security
