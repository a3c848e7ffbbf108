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

// Ends calls whose answers are not read. An answer is held in memory until its
// client has taken it, so a client that never does must not keep it for ever.
//
// Thread-safe.
class SendWatch {
 public:
  // An answer may take `timeout` to be sent, by `clock`.
  SendWatch(absl::Duration timeout, std::function<absl::Time()> clock);

  // To be called before Finish(): the call's answer is about to be sent.
  void Sending(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  // To be called in OnDone(), where the context still lives.
  void Done(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels the calls whose answers have taken too long, each once, and returns
  // how many. To be called again and again, but by none of gRPC's threads.
  int CancelLate() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Duration timeout_;
  const std::function<absl::Time()> clock_;

  absl::Mutex mu_;
  // When each call must have been sent; those cancelled already have no time.
  absl::flat_hash_map<grpc::CallbackServerContext*, absl::Time> sending_
      ABSL_GUARDED_BY(mu_);
};

// A unary call that is answered later, by any thread. Deletes itself once gRPC
// is done with it, which is when the answer is sent. `context` and `sends`
// outlive it.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(grpc::CallbackServerContext* context, SendWatch* sends)
      : context_(*context), sends_(*sends) {}

  // The thread of gRPC that sees that a call was cancelled or has ended calls
  // OnCancel() and OnDone(), which must not block. By default it wakes another
  // thread for that, which takes longer than they do.
  bool InternalInlineable() final { return true; }
  void OnDone() final {
    sends_.Done(&context_);
    delete this;
  }

 protected:
  ~UnaryCall() override = default;

  // Ends the call, exactly once: the answer is complete, or there is an error.
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
