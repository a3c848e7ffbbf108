#ifndef SFMAMBA_SERVER_SHARES_CLIENT_SET_H_
#define SFMAMBA_SERVER_SHARES_CLIENT_SET_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace sfmamba::server {

// A set of clients, used to log something only once per client. If the set is
// full, the next insertion clears it first. Thread-safe.
class ClientSet {
 public:
  explicit ClientSet(size_t max_clients) : max_clients_(max_clients) {}

  // Inserts the client. Returns true if the client was not in the set before.
  bool Insert(absl::string_view client) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const size_t max_clients_;
  absl::Mutex mu_;
  absl::flat_hash_set<std::string> clients_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SHARES_CLIENT_SET_H_
