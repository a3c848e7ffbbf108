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

// A call that changes the server, such as a model load. The response is sent
// when the change ends. If the client disconnects, the call ends with CANCELLED
// but the change continues. The call is counted and logged when the change
// ends.
//
// Thread-safe. The code that performs the change shares ownership of this
// object. The object may outlive the transport, but must not outlive the
// environment's metrics and log.
class ChangeCall : public std::enable_shared_from_this<ChangeCall> {
 public:
  static std::shared_ptr<ChangeCall> New(
      const prediction::TransportEnvironment& environment,
      observability::Method counted_as, std::unique_ptr<Call> call);

  // See call::Call for info() and Read(). Both are called before the change
  // begins.
  const prediction::CallInfo& info() const { return call_->info(); }
  absl::Status Read(Message* request);

  // Returns true if the client no longer waits for the response. The client has
  // then disconnected, or the response was already sent.
  bool client_has_gone() const { return is_answered_.load(); }
  // Ends the call. Must be called exactly once, when the change has ended.
  // Sends `response` if `status` is OK. Otherwise sends the error.
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
