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

// Enforces the quota of each client. A quota limits the number of images in the
// server and the number of images per second. A token bucket limits the number
// of images per second. Each image takes one token. The bucket receives tokens
// at the configured rate. The burst is the maximum number of tokens in the
// bucket.
//
// Thread-safe. A client stays in memory as long as it has images in the server
// or its bucket is not full. All other clients are removed from time to time.
class ClientQuotas {
 public:
  // The images that one hold counts. A hold is the object that Take() returns.
  // The images count as images in the server until the hold is destroyed.
  // `client` is the client's name, and `items` is the number of images.
  struct Part {
    std::string client;
    int items = 0;

    Part Split(int some_items);
  };
  using Hold = server::Hold<ClientQuotas>;

  explicit ClientQuotas(std::function<absl::Time()> clock = base::SteadyNow)
      : clock_(std::move(clock)) {}

  // Counts `items` images of `caller` as images in the server until the
  // returned hold is destroyed. Also takes a token for each image. Returns
  // RESOURCE_EXHAUSTED with reason CLIENT_QUOTA if the images exceed the quota.
  // The error has a retry delay unless `items` is larger than Quota::max_items.
  absl::StatusOr<Hold> Take(const Caller& caller, int items)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Destroys a hold whose images were never processed. Also returns their
  // tokens to the bucket, so the images do not count for the rate.
  void Refund(Hold hold) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of clients kept in memory.
  size_t clients() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend Hold;

  // A token bucket. The bucket stores the number of missing tokens instead of
  // the number of tokens. In a full bucket, 0 tokens are missing, whatever the
  // burst is. A new Bucket is therefore full, and a client with a full bucket
  // need not stay in memory.
  struct Bucket {
    double lacking = 0;  // The number of missing tokens. May exceed the burst.
    absl::Time updated = absl::InfinitePast();
    double rate = 0;

    void Fill(const Quota& quota, absl::Time now);
  };
  struct Client {
    int items = 0;  // Number of images in the server.
    Bucket bucket;

    bool IsIdle(absl::Time now) const;
  };

  void GiveBack(const Part& part) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes clients that have a full bucket and no images in the server. Does
  // nothing before next_sweep_.
  void Sweep(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<absl::Time()> clock_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mu_);
  absl::Time next_sweep_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
