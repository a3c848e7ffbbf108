#ifndef SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_
#define SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::server {

// The client that `peer` belongs to: its address without the port. `peer` is as
// gRPC writes it: "ipv4:10.0.0.7:41234".
absl::string_view ClientOf(absl::string_view peer);

// Keeps a single client from filling what all clients share, such as a queue's
// places or the time before a deadline. A client may hold at most `most_alone`
// / (1 - `most_alone`) times what is left free. So one client alone fills
// `most_alone` of it and is not slowed down, any number of greedy clients get
// equal shares, and some of it always stays free for the next one.
// Source: dynamic thresholds for shared memory (Choudhury and Hahne, IEEE/ACM
// Transactions on Networking 6(2), 1998).
//
// Thread-safe.
class ClientShares {
 public:
  // `most_alone` is in 0.5 to 1; 1 means that there is no limit.
  explicit ClientShares(double most_alone);

  // Counts `amount` as held by `client` until GiveBack(). False, and nothing is
  // counted, if that would be more than its share. `free` is what is left:
  // before it is taken if amounts are small, after that if one may be large.
  bool Take(absl::string_view client, int64_t amount, int64_t free);
  // The client holds `amount` less. It holds at least as much.
  void GiveBack(absl::string_view client, int64_t amount);

  // Whether a client may hold `amount` in all; `free` as above, with what the
  // client would take added to it.
  bool IsShare(double amount, double free) const;

  // The most that a client may hold of `all` so that its share is left free.
  int64_t MostAlone(int64_t all) const;

  // What `client` holds.
  int64_t HeldBy(absl::string_view client) const;
  // How many clients hold something.
  int clients() const;

 private:
  const double times_free_;
  mutable absl::Mutex mu_;
  // Without the clients that hold nothing, so that it stays small.
  absl::flat_hash_map<std::string, int64_t> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_CLIENT_SHARES_H_
