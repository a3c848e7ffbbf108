#ifndef SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
#define SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

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

  explicit ClientQuotas(std::function<absl::Time()> clock = base::SteadyNow);
  ~ClientQuotas();

  // Counts `items` images of `caller` until the hold ends. RESOURCE_EXHAUSTED,
  // CLIENT_QUOTA, if they are more than its quota allows now: with a hint when
  // to try again, unless so many at once never fit.
  absl::StatusOr<Hold> Take(const Caller& caller, int items);
  // Ends the hold. Its images never began and do not count for the rate.
  void Refund(Hold hold);

  // The clients that memory is held for.
  size_t clients() const;

 private:
  friend Hold;
  struct Table;
  void GiveBack(const Part& part);

  const std::function<absl::Time()> clock_;
  const std::unique_ptr<Table> table_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
