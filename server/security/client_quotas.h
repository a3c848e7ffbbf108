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

namespace sfmamba::security {

// Counts what each client has in the server, and holds it to its quota: how
// many images at a time, and how many in a second (a token bucket that fills at
// the rate, up to the burst).
//
// Thread-safe. Holds memory for the clients only that have anything or whose
// bucket is not full.
class ClientQuotas {
  struct Table;

 public:
  // What a client has in the server; its end gives it back. It may outlive the
  // quotas. Thread-compatible.
  class Hold {
   public:
    Hold() = default;  // Holds nothing.
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

    // Moves `items` of what is held into the returned hold.
    Hold Split(int items);
    // The images have ended.
    void Release() { GiveBack(false); }
    // The images never began: they do not count for the rate either.
    void Refund() { GiveBack(true); }

   private:
    friend class ClientQuotas;
    Hold(std::shared_ptr<Table> table, std::string client, int items);
    void GiveBack(bool refund);

    std::shared_ptr<Table> table_;  // Null if this holds nothing.
    std::string client_;
    int items_ = 0;
  };

  explicit ClientQuotas(std::function<absl::Time()> clock = base::SteadyNow);

  // Counts `items` images of `caller` until the hold ends. RESOURCE_EXHAUSTED,
  // CLIENT_QUOTA, if they are more than its quota allows now: with a hint when
  // to try again, unless so many at once never fit.
  absl::StatusOr<Hold> Take(const Caller& caller, int items);

  // The clients that memory is held for.
  size_t clients() const;

 private:
  const std::function<absl::Time()> clock_;
  const std::shared_ptr<Table> table_;
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_CLIENT_QUOTAS_H_
