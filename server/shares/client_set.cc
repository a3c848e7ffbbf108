#include "server/shares/client_set.h"

#include "server/shares/client_shares.h"

namespace sfmamba::server {

bool ClientSet::Insert(absl::string_view peer) {
  const absl::string_view client = ClientOf(peer);
  absl::MutexLock lock(&mu_);
  if (clients_.contains(client)) return false;
  if (clients_.size() >= max_clients_) clients_.clear();
  clients_.emplace(client);
  return true;
}

}  // namespace sfmamba::server
