#include "server/security/client_quotas.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::security {
namespace {

// Delay after which an image of the same client may have ended.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
// Number of clients above which those with nothing to remember are removed.
constexpr size_t kFewClients = 1024;
// Most clients that are counted. Anyone can use many addresses, so beyond this
// number new clients are admitted without limits rather than remembered.
constexpr size_t kMostClients = 1 << 16;

double BurstOf(const Quota& quota) {
  return quota.burst > 0 ? quota.burst : std::max(1.0, quota.items_per_second);
}

// A token bucket. What it lacks is counted, so that a full one needs no entry.
struct Bucket {
  double lacking = 0;  // Below 0 never; may be more than the burst.
  absl::Time updated = absl::InfinitePast();
  double rate = 0;

  void Fill(const Quota& quota, absl::Time now) {
    // A client whose quota has changed goes on with what it lacks.
    rate = quota.items_per_second;
    if (lacking > 0) {
      lacking =
          std::max(0.0, lacking - rate * absl::ToDoubleSeconds(now - updated));
    }
    updated = now;
  }
};

}  // namespace

struct ClientQuotas::Table {
  struct Client {
    int items = 0;  // In the server.
    Bucket bucket;

    bool IsIdle(absl::Time now) const {
      return items == 0 &&
             bucket.lacking <=
                 bucket.rate * absl::ToDoubleSeconds(now - bucket.updated);
    }
  };

  // Forgets clients that have nothing, if there are many.
  void Sweep(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (clients.size() < sweep_at) return;
    for (auto it = clients.begin(); it != clients.end();) {
      const auto client = it++;
      if (client->second.IsIdle(now)) clients.erase(client);
    }
    sweep_at = std::max(kFewClients, 2 * clients.size());
  }

  mutable absl::Mutex mu;
  absl::flat_hash_map<std::string, Client> clients ABSL_GUARDED_BY(mu);
  size_t sweep_at ABSL_GUARDED_BY(mu) = kFewClients;
};

ClientQuotas::Part ClientQuotas::Part::Split(int some_items) {
  assert(some_items <= items);
  items -= some_items;
  return {client, some_items};
}

ClientQuotas::ClientQuotas(std::function<absl::Time()> clock)
    : clock_(std::move(clock)), table_(std::make_unique<Table>()) {}

ClientQuotas::~ClientQuotas() = default;

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
  absl::MutexLock lock(&table_->mu);
  table_->Sweep(now);
  if (table_->clients.size() >= kMostClients &&
      !table_->clients.contains(caller.name)) {
    return Hold();
  }
  Table::Client& client = table_->clients[caller.name];
  if (quota.max_items > 0 && client.items + items > quota.max_items) {
    return server::OverQuota(caller.name, "images at a time", items,
                             absl::StrCat(quota.max_items), kRetryAfter);
  }
  if (has_rate) {
    Bucket& bucket = client.bucket;
    bucket.Fill(quota, now);
    // More than the bucket ever holds pass when it is full, and are paid for
    // afterwards.
    const double burst = BurstOf(quota);
    const double needed = std::min<double>(items, burst);
    const double missing = bucket.lacking + needed - burst;
    if (missing > 0) {
      if (client.items == 0 && bucket.lacking == 0) {
        table_->clients.erase(caller.name);
      }
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
  absl::MutexLock lock(&table_->mu);
  const auto found = table_->clients.find(hold->client);
  if (found == table_->clients.end()) return;
  double& lacking = found->second.bucket.lacking;
  lacking = std::max(0.0, lacking - hold->items);
}

void ClientQuotas::GiveBack(const Part& part) {
  absl::MutexLock lock(&table_->mu);
  const auto found = table_->clients.find(part.client);
  if (found == table_->clients.end()) return;
  found->second.items -= part.items;
  if (found->second.items == 0 && found->second.bucket.lacking == 0) {
    table_->clients.erase(found);
  }
}

size_t ClientQuotas::clients() const {
  absl::MutexLock lock(&table_->mu);
  return table_->clients.size();
}

}  // namespace sfmamba::security
