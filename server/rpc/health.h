#ifndef SFMAMBA_SERVER_RPC_HEALTH_H_
#define SFMAMBA_SERVER_RPC_HEALTH_H_

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/security/gate.h"

namespace sfmamba::rpc {

// Implements grpc.health.v1.Health. A name that was never set is NOT_FOUND for
// Check and SERVICE_UNKNOWN for Watch. The name "liveness" always exists and is
// SERVING while `alive` returns true.
// Its watches learn of a change when UpdateLiveness() is called. A name of more
// than 256 bytes is INVALID_ARGUMENT, and so is a malformed message, which
// gRPC's handlers of parsed messages answer with UNIMPLEMENTED.
//
// gRPC's own implementation keeps watchers' streams open until a stopping
// server cancels them; this one ends them. Thread-safe.
class HealthService final
    : public grpc::health::v1::Health::WithRawCallbackMethod_Check<
          grpc::health::v1::Health::WithRawCallbackMethod_Watch<
              grpc::health::v1::Health::Service>> {
 public:
  // `alive` must be quick and thread-safe. When there are more than
  // `max_watches`, the client with the most loses its oldest: that one ends
  // with RESOURCE_EXHAUSTED. A client is an address, because health asks for no
  // token. `gate` says which address a call comes from. If it is null, it is
  // the peer's.
  HealthService(std::function<bool()> alive, int max_watches,
                const security::Gate* gate = nullptr);

  void SetServing(const std::string& name, bool serving)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a name that was set is SERVING.
  bool IsServing(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Makes every name that was set NOT_SERVING.
  void SetNoneServing() ABSL_LOCKS_EXCLUDED(mu_);
  // Makes every name NOT_SERVING for good.
  void Fail() ABSL_LOCKS_EXCLUDED(mu_);
  // Asks `alive` again, for the watches of "liveness". To be called now and
  // then.
  void UpdateLiveness() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all watches. New ones end at once.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;

 private:
  using ServingStatus = grpc::health::v1::HealthCheckResponse::ServingStatus;
  class Watcher;

  // SERVICE_UNKNOWN if there is no such name.
  ServingStatus StatusOf(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the watchers of `name` its status, if it has changed.
  void TellWatchersOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetLocked(const std::string& name, bool serving)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the watcher its name's status, or ends it.
  void Tell(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the oldest watch of the client with the most: of `newest`'s client
  // unless another has more.
  void EndOneBeside(const Watcher& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts a watch no more; does nothing if it was not counted.
  void Forget(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<bool()> alive_;
  const int max_watches_;
  const security::Gate* const gate_;  // May be null.
  mutable absl::Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  // By client, the oldest first. Each deletes itself.
  std::map<std::string, std::deque<Watcher*>> watchers_ ABSL_GUARDED_BY(mu_);
  int watches_ ABSL_GUARDED_BY(mu_) = 0;  // Those in watchers_.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_HEALTH_H_
