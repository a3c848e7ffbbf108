#ifndef SFMAMBA_SERVER_CALL_CHANGE_CALL_H_
#define SFMAMBA_SERVER_CALL_CHANGE_CALL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/call/method_table.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::call {

// A call that changes the server. It is answered when the change ends, or with
// CANCELLED as soon as its client goes away. The change goes on then. It is
// counted and logged when it ends.
//
// Thread-safe. The code that makes the change shares it, and may outlive the
// transport but not the environment's metrics and log.
class ChangeCall : public std::enable_shared_from_this<ChangeCall> {
 public:
  static std::shared_ptr<ChangeCall> New(
      const prediction::TransportEnvironment& environment,
      observability::Method counted_as, std::unique_ptr<Call> call);

  // See Call. Both are used before the change begins.
  const prediction::CallInfo& info() const { return call_->info(); }
  absl::Status Read(Message* request);

  // Returns whether the client has gone away or has its response.
  bool client_has_gone() const { return is_answered_.load(); }
  // The change has ended. Called exactly once. `response` is sent if `status`
  // is OK.
  void End(const absl::Status& status, Message* response);

 private:
  ChangeCall(const prediction::TransportEnvironment& environment,
             observability::Method counted_as, std::unique_ptr<Call> call);

  void Answer(const absl::Status& status, Message* response);

  const std::unique_ptr<Call> call_;
  CallRecord record_;
  std::atomic<bool> is_answered_{false};
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_CHANGE_CALL_H_
