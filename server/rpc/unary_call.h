#ifndef SFMAMBA_SERVER_RPC_UNARY_CALL_H_
#define SFMAMBA_SERVER_RPC_UNARY_CALL_H_

#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "grpcpp/support/status.h"
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
    status_ = EndCall(status, &context_);
    grpc_call* const call = context_.c_call();  // None in tests without gRPC.
    if (call == nullptr || std::this_thread::get_id() == started_by_) {
      return Finish(status_);
    }
    // Sending takes locks that gRPC's threads want as soon as the client sends
    // its next request. One of them must be woken anyway, to be told that the
    // answer is sent, so it sends it too. To have it run `turn_` a batch of no
    // operations is started, which ends at once. The call may have ended, too,
    // before this returns: it is held until then.
    grpc_call_ref(call);
    grpc_call_start_batch(call, nullptr, 0, &turn_, nullptr);
    grpc_call_unref(call);
  }

 private:
  // What one of gRPC's threads is to do.
  struct Turn : grpc_completion_queue_functor {
    explicit Turn(UnaryCall* call) : call(call) {
      functor_run = [](grpc_completion_queue_functor* turn, int /*ok*/) {
        UnaryCall* const call = static_cast<Turn*>(turn)->call;
        call->Finish(std::move(call->status_));
      };
      inlineable = true;
    }
    UnaryCall* const call;
  };

  grpc::CallbackServerContext& context_;
  SendWatch& sends_;
  const std::thread::id started_by_ = std::this_thread::get_id();  // gRPC's.
  grpc::Status status_;
  Turn turn_{this};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_UNARY_CALL_H_
