#ifndef SFMAMBA_SERVER_RPC_SEND_WATCH_H_
#define SFMAMBA_SERVER_RPC_SEND_WATCH_H_

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

// Cancels calls whose clients do not read the response. A response stays in
// memory until the client has read it, and must not stay there forever.
//
// Thread-safe.
class SendWatch {
 public:
  // Cancels a call if sending its response takes longer than `timeout`. `clock`
  // returns the current time.
  SendWatch(absl::Duration timeout, std::function<absl::Time()> clock);

  // Records that a call is about to send its response. Must be called before
  // Finish().
  void Sending(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  // Records that a call has ended. Must be called in OnDone(), while the
  // context still exists.
  void Done(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels each call whose response has taken too long and returns the number
  // of these calls. Must be called periodically, by a thread that does not
  // belong to gRPC.
  int CancelLate() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Duration timeout_;
  const std::function<absl::Time()> clock_;

  absl::Mutex mu_;
  // The time by which each response must have been sent. If a call was already
  // cancelled, the time is InfiniteFuture().
  absl::flat_hash_map<grpc::CallbackServerContext*, absl::Time> sending_
      ABSL_GUARDED_BY(mu_);
};

// A unary call that any thread may answer later. Deletes itself after the
// response is sent. `context` and `sends` must outlive the call.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(grpc::CallbackServerContext* context, SendWatch* sends)
      : context_(*context), sends_(*sends) {}

  // Returns true. gRPC then calls OnCancel() and OnDone() on the thread that
  // notices the cancellation or the end of the call. These functions must
  // therefore not block. By default, gRPC would wake another thread, which
  // takes longer than the functions do.
  bool InternalInlineable() final { return true; }
  void OnDone() final {
    sends_.Done(&context_);
    delete this;
  }

 protected:
  ~UnaryCall() override = default;

  // Ends the call. Must be called exactly once, when the response is complete
  // or an error occurred.
  void Send(const absl::Status& status) {
    sends_.Sending(&context_);
    Finish(EndCall(status, &context_));
  }

 private:
  grpc::CallbackServerContext& context_;
  SendWatch& sends_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_SEND_WATCH_H_
