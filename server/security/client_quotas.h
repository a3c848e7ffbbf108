#ifndef SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
#define SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/security/caller.h"
#include "server/shares/hold.h"

namespace sfmamba::security {

// Counts what each client has in the server, and holds it to its quota: how
// many images at a time, and how many in a second (a token bucket that fills at
// the rate, up to the burst).
//
// Thread-safe. Holds memory for the clients only that have anything or whose
// bucket is not full.
class ClientQuotas {
 public:
  // What a hold holds: images of a client in the server.
  struct Part {
    std::string client;
    int items = 0;

    Part Split(int some_items);
  };
  using Hold = server::Hold<ClientQuotas>;

  explicit ClientQuotas(std::function<absl::Time()> clock = base::SteadyNow)
      : clock_(std::move(clock)) {}

  // Counts `items` images of `caller` until the hold ends. RESOURCE_EXHAUSTED,
  // CLIENT_QUOTA, if they are more than its quota allows now: with a hint when
  // to try again, unless so many at once never fit.
  absl::StatusOr<Hold> Take(const Caller& caller, int items)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the hold. Its images never began and do not count for the rate.
  void Refund(Hold hold) ABSL_LOCKS_EXCLUDED(mu_);

  // The clients that memory is held for.
  size_t clients() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend Hold;

  // A token bucket. What it lacks is counted, so that a full one needs no
  // entry.
  struct Bucket {
    double lacking = 0;  // Never below 0; may be more than the burst.
    absl::Time updated = absl::InfinitePast();
    double rate = 0;

    void Fill(const Quota& quota, absl::Time now);
  };
  struct Client {
    int items = 0;  // In the server.
    Bucket bucket;

    bool IsIdle(absl::Time now) const;
  };

  void GiveBack(const Part& part) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets clients that have nothing.
  void Sweep(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<absl::Time()> clock_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mu_);
  // Sweep() looks at no client before this time.
  absl::Time next_sweep_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
