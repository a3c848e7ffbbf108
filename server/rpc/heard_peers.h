#ifndef SFMAMBA_SERVER_RPC_HEARD_PEERS_H_
#define SFMAMBA_SERVER_RPC_HEARD_PEERS_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_interceptor.h"

namespace sfmamba::rpc {

// The peers, as gRPC names them, from which a whole message has come lately.
// Thread-safe.
class HeardPeers {
 public:
  using Set = absl::flat_hash_set<std::string>;

  void Add(std::string peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Those added since the last call.
  Set Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  Set peers_ ABSL_GUARDED_BY(mu_);
};

// Tells `heard`, which outlives the server, of each message to a server.
class MessageInterceptors final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit MessageInterceptors(HeardPeers* heard) : heard_(*heard) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  HeardPeers& heard_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_HEARD_PEERS_H_
