#ifndef SFMAMBA_SERVER_RPC_RESET_GUARD_H_
#define SFMAMBA_SERVER_RPC_RESET_GUARD_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_interceptor.h"

namespace sfmamba::rpc {

// Finds connections whose calls are begun only to be reset. Such a call costs
// the client 100 bytes and the server 10 KiB until its turn comes, and HTTP/2's
// limit of concurrent calls does not count it. A connection that resets more
// than `kMostResets` calls in a second as soon as they have begun is told of.
//
// Thread-safe.
class ResetGuard {
 public:
  static constexpr int kMostResets = 1000;

  // `end` gets the peer, as gRPC names it. Must not block.
  explicit ResetGuard(std::function<void(const std::string& peer)> end)
      : end_(std::move(end)) {}

  // A call of `peer` was cancelled at `now`, `lived` after it had begun.
  void Cancelled(const std::string& peer, absl::Duration lived, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::function<void(const std::string& peer)> end_;
  absl::Mutex mu_;
  absl::Time second_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // Resets of this second, by peer.
  absl::flat_hash_map<std::string, int> resets_ ABSL_GUARDED_BY(mu_);
};

// Tells `guard`, which outlives the server, of each cancelled unary call of a
// server, whose unary methods must be of the callback API.
class ResetInterceptors final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit ResetInterceptors(ResetGuard* guard) : guard_(*guard) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override;

 private:
  ResetGuard& guard_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_RESET_GUARD_H_
