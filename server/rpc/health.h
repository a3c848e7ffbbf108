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

// Implements grpc.health.v1.Health. For an unknown name, Check returns
// NOT_FOUND and Watch sends SERVICE_UNKNOWN. The name "liveness" always exists
// and is SERVING while `alive` returns true. If the result of `alive` changes,
// watchers of "liveness" are notified by the next call of UpdateLiveness(). For
// a name longer than 256 bytes or a malformed message, both methods return
// INVALID_ARGUMENT. (For malformed messages, gRPC's default handlers return
// UNIMPLEMENTED.)
//
// This class ends Watch streams when the server stops. gRPC's own
// implementation leaves the streams open until the server cancels them.
// Thread-safe.
class HealthService final
    : public grpc::health::v1::Health::WithRawCallbackMethod_Check<
          grpc::health::v1::Health::WithRawCallbackMethod_Watch<
              grpc::health::v1::Health::Service>> {
 public:
  // `alive` must be fast and thread-safe. If more than `max_watches` Watch
  // streams are open, the client with the most streams loses its oldest stream.
  // This stream ends with RESOURCE_EXHAUSTED. Health calls need no token, so a
  // client is identified by its address. `gate` determines the address of a
  // client. If `gate` is null, the peer's address is used.
  HealthService(std::function<bool()> alive, int max_watches,
                const security::Gate* gate = nullptr);

  void SetServing(const std::string& name, bool serving)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if `name` was last set to SERVING. Always returns false after
  // Fail() was called.
  bool IsServing(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);
  // Sets every known name to NOT_SERVING.
  void SetNoneServing() ABSL_LOCKS_EXCLUDED(mu_);
  // Sets every name, including "liveness", to NOT_SERVING permanently.
  void Fail() ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `alive` again. If the result has changed, notifies the watchers of
  // "liveness". Must be called periodically.
  void UpdateLiveness() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all watches. A watch that starts later ends immediately.
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

  // Returns the status of `name`, or SERVICE_UNKNOWN if `name` does not exist.
  ServingStatus StatusOf(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the status of `name` to its watchers if the status has changed.
  void TellWatchersOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetLocked(const std::string& name, bool serving)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If the status of the watcher's name has changed, sends the new status to
  // the watcher. After EndWatches(), ends the watch instead.
  void Tell(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the oldest watch of the client with the most watches. If several
  // clients have the most watches and the client of `newest` is one of them,
  // ends a watch of this client. If the client of `newest` is not one of them,
  // ends a watch of any of them. If every client has only one watch, the watch
  // that ends is `newest` itself, despite the name of this method.
  void EndOneBeside(const Watcher& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes a watcher from watchers_. Does nothing if the watcher was already
  // removed.
  void Forget(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<bool()> alive_;
  const int max_watches_;
  const security::Gate* const gate_;  // May be null.
  mutable absl::Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  // The watchers of each client, oldest first. Each watcher deletes itself.
  std::map<std::string, std::deque<Watcher*>> watchers_ ABSL_GUARDED_BY(mu_);
  // The number of watchers in watchers_.
  int watches_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_HEALTH_H_
