#ifndef SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_
#define SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::server {

// Returns the client's address, which is `peer` without the port. `peer` is in
// gRPC's notation, such as "ipv4:10.0.0.7:41234".
absl::string_view ClientOf(absl::string_view peer);

// Limits how much of a shared resource one client may use. The resource is, for
// example, the bytes of a queue, or the device time that is available until a
// deadline. If only one client uses the resource, this client may fill the
// fraction `most_alone` of the resource. If several clients take as much as
// possible, they get equal shares. A part of the resource always stays unused
// for the next client.
//
// The share of a client is the most that the client may hold. The share is the
// unused amount multiplied by `most_alone` / (1 - `most_alone`). The share
// becomes smaller when clients take more. For example, if `most_alone` is 0.5,
// the share of each client is as large as the unused amount. A single client
// can then hold up to 45 of 90 bytes, because 45 bytes stay unused. Two clients
// can hold up to 30 bytes each, because 30 bytes stay unused. Source: dynamic
// thresholds for shared memory (Choudhury and Hahne, IEEE/ACM Transactions on
// Networking 6(2), 1998).
//
// Thread-safe.
class ClientShares {
 public:
  // `most_alone` is between 0.5 and 1. The value 1 disables the limit.
  explicit ClientShares(double most_alone);

  // Counts `amount` as held by `client` until GiveBack(). Returns false and
  // counts nothing if the client would then hold more than its share of the
  // resource. The share is computed from `free`, the unused amount of the
  // resource. The caller chooses one of two values for `free`:
  // - The amount that is unused after taking `amount`. The limits in the
  //   comment of the class then hold exactly.
  // - The amount that is unused before taking `amount`. The share is then
  //   larger. If the resource is unused, a single call can take all of it.
  bool Take(absl::string_view client, int64_t amount, int64_t free);
  // Subtracts `amount`, which is at most the amount that the client holds.
  void GiveBack(absl::string_view client, int64_t amount);

  // Returns true if `amount` is at most the share of a client. `free` is the
  // unused amount of the resource, see Take().
  bool IsShare(double amount, double free) const;

  // Returns the largest amount that a single client may hold of a resource of
  // size `all` if no other client holds anything.
  int64_t MostAlone(int64_t all) const;

  // Returns the amount that `client` holds.
  int64_t HeldBy(absl::string_view client) const;
  // Returns the number of clients that hold something.
  int clients() const;

 private:
  const double times_free_;
  mutable absl::Mutex mu_;
  // Contains only clients that hold something, which keeps the map small.
  absl::flat_hash_map<std::string, int64_t> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_
