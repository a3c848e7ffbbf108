#ifndef SFMAMBA_SERVER_RPC_PORT_CALL_COUNTS_H_
#define SFMAMBA_SERVER_RPC_PORT_CALL_COUNTS_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_interceptor.h"

namespace sfmamba::rpc {

// Counts the open calls that gRPC has handed to their methods, by connection: a
// unary call once its message has come, a stream, which bounds itself, at once.
//
// Thread-safe. Peers are as gRPC names them.
class CallCounts {
 public:
  void Came(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // A call that came is gone.
  void Gone(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many calls of the connection came and are not gone.
  int Of(const std::string& peer) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  // By peer; at least 1.
  absl::flat_hash_map<std::string, int> calls_ ABSL_GUARDED_BY(mu_);
};

// Has `counts`, which outlives the server, count a server's calls. The server's
// methods must be of the callback API.
class CallInterceptors final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallInterceptors(CallCounts* counts) : counts_(*counts) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  CallCounts& counts_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CALL_COUNTS_H_
