#include "server/shares/client_set.h"

namespace sfmamba::server {

bool ClientSet::Insert(absl::string_view client) {
  absl::MutexLock lock(&mu_);
  if (clients_.contains(client)) return false;
  if (clients_.size() >= max_clients_) clients_.clear();
  clients_.emplace(client);
  return true;
}

}  // namespace sfmamba::server
