#ifndef SFMAMBA_SERVER_RPC_HEALTH_H_
#define SFMAMBA_SERVER_RPC_HEALTH_H_

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace sfmamba::rpc {

// Implements grpc.health.v1.Health. A name that was never set is NOT_FOUND for
// Check and SERVICE_UNKNOWN for Watch. The name "liveness" always exists and is
// SERVING while `alive` returns true.
// Its watches learn of a change when UpdateLiveness() is called. A name of more
// than 256 bytes is INVALID_ARGUMENT.
//
// gRPC's own implementation keeps watchers' streams open until a stopping
// server cancels them; this one ends them. Thread-safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // `alive` must be quick and thread-safe. Of watches beyond `max_watches` each
  // is refused with RESOURCE_EXHAUSTED.
  HealthService(std::function<bool()> alive, int max_watches);

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

  grpc::ServerUnaryReactor* Check(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request,
      grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

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
  // OK, or why there cannot be another watch of `name`.
  grpc::Status CheckWatch(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends the watcher its name's status, or ends it.
  void Tell(Watcher* watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<bool()> alive_;
  const size_t max_watches_;
  mutable absl::Mutex mu_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mu_);
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mu_);  // Each deletes itself.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_HEALTH_H_
