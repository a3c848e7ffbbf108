#ifndef SFMAMBA_SERVER_RPC_PORT_RESET_GUARD_H_
#define SFMAMBA_SERVER_RPC_PORT_RESET_GUARD_H_

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_interceptor.h"

namespace sfmamba::rpc {

// How a call ended, as far as its client is to blame.
enum class CallEnd {
  kAnswered,
  kReset,    // By its client, or as soon as it had begun.
  kExpired,  // It was given time, and its deadline passed.
};

// How a call ended that `lived` for some time; `left` is what was left until
// its deadline then. A call that is reset is so whatever its age: where others
// keep the processor busy, its handler comes late.
CallEnd EndOf(bool cancelled, absl::Duration lived, absl::Duration left);

// Finds connections whose calls are begun only to be reset. Such a call costs
// the client 100 bytes and the server 10 KiB until its turn comes, and HTTP/2's
// limit of concurrent calls does not count it. A connection that resets
// `kMostResets` calls in a second more than it lets be answered is told of.
//
// Thread-safe.
class ResetGuard {
 public:
  static constexpr int kMostResets = 1000;

  // `end` gets the peer, as gRPC names it. Must not block.
  explicit ResetGuard(std::function<void(const std::string& peer)> end)
      : end_(std::move(end)) {}

  // A call of `peer` ended at `now`.
  void Ended(const std::string& peer, CallEnd how, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Resets {
    int surplus = 0;  // Over the calls that were answered since.
    bool told = false;
  };

  const std::function<void(const std::string& peer)> end_;
  // Whether there are any: answers need not look otherwise.
  std::atomic<bool> any_{false};
  absl::Mutex mu_;
  absl::Time second_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // The resets since second_, by peer.
  absl::flat_hash_map<std::string, Resets> resets_ ABSL_GUARDED_BY(mu_);
};

// Tells `guard`, which outlives the server, of each unary call of a server,
// whose unary methods must be of the callback API.
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

#endif  // SFMAMBA_SERVER_RPC_PORT_RESET_GUARD_H_
