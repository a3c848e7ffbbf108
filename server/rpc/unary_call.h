#ifndef SFMAMBA_SERVER_RPC_UNARY_CALL_H_
#define SFMAMBA_SERVER_RPC_UNARY_CALL_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/send_watch.h"

namespace sfmamba::rpc {

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

#endif  // SFMAMBA_SERVER_RPC_UNARY_CALL_H_
