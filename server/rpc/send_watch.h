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

// Ends calls whose responses are not read. A response is held in memory until
// its client has read it, so a client that never reads must not keep it for
// ever.
//
// Thread-safe.
class SendWatch {
 public:
  // Sending a response may take `timeout`, by `clock`.
  SendWatch(absl::Duration timeout, std::function<absl::Time()> clock);

  // Called before Finish(), when the response is about to be sent.
  void Sending(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  // Called in OnDone(), while the context still lives.
  void Done(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels the calls whose responses have taken too long, each once, and
  // returns how many. Called again and again, but by none of gRPC's threads.
  int CancelLate() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const absl::Duration timeout_;
  const std::function<absl::Time()> clock_;

  absl::Mutex mu_;
  // When each response must have been sent. Infinite for cancelled calls.
  absl::flat_hash_map<grpc::CallbackServerContext*, absl::Time> sending_
      ABSL_GUARDED_BY(mu_);
};

// A unary call that is answered later, by any thread. Deletes itself once gRPC
// is done with it, when the response is sent. `context` and `sends` outlive it.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(grpc::CallbackServerContext* context, SendWatch* sends)
      : context_(*context), sends_(*sends) {}

  // The thread of gRPC that learns of a cancellation or of the end of a call
  // runs OnCancel() and OnDone() itself, so they must not block. By default it
  // wakes another thread, which takes longer than they do.
  bool InternalInlineable() final { return true; }
  void OnDone() final {
    sends_.Done(&context_);
    delete this;
  }

 protected:
  ~UnaryCall() override = default;

  // Ends the call. Called exactly once, when the response is complete or there
  // is an error.
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
