#ifndef SFMAMBA_SERVER_RPC_PORT_CALL_COUNTS_H_
#define SFMAMBA_SERVER_RPC_PORT_CALL_COUNTS_H_

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

// Counts the open calls whose first messages have come, by connection, and
// finds connections whose calls are begun only to be reset. Such a call costs
// the client 100 bytes and the server 10 KiB until its turn comes, and HTTP/2's
// limit of concurrent calls does not count it. A connection that resets
// `kMostResets` calls in a second more than it lets be answered is ended.
//
// Thread-safe. Peers are as gRPC names them.
class CallCounts {
 public:
  static constexpr int kMostResets = 1000;

  // `end` gets the peer. Must not block.
  explicit CallCounts(std::function<void(const std::string& peer)> end)
      : end_(std::move(end)) {}

  // The first message of a call has come. Gone() follows at the call's end.
  void MessageCame(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  void Gone(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  void Ended(const std::string& peer, CallEnd how, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many calls of the connection have messages and are not gone.
  int WithMessage(const std::string& peer) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Calls {
    int with_message = 0;
    int resets = 0;         // Since second_, over those answered since.
    bool is_ended = false;  // Since second_.
  };

  const std::function<void(const std::string& peer)> end_;
  mutable absl::Mutex mu_;
  absl::Time second_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::flat_hash_map<std::string, Calls> calls_ ABSL_GUARDED_BY(mu_);
};

// Has `counts`, which outlives the server, count the calls of a server, whose
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
