#ifndef SFMAMBA_SERVER_RPC_CHANGE_CALL_H_
#define SFMAMBA_SERVER_RPC_CHANGE_CALL_H_

#include <atomic>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/admin/model_changes.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"

namespace sfmamba::rpc {

// A call of a method with one request and one response, as gRPC hands it over.
struct RawCall {
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// Who makes a call.
admin::Caller CallerOf(const grpc::CallbackServerContext& context);

// A call that is answered when a change of the server has ended, or as soon as
// its caller goes: the change is made all the same.
//
// Thread-safe. It lives until gRPC and whoever makes the change are done.
class ChangeCall final : public grpc::ServerUnaryReactor {
 public:
  // `metrics` and `log` outlive the call.
  static std::shared_ptr<ChangeCall> New(observability::Method method,
                                         const RawCall& call,
                                         observability::Metrics* metrics,
                                         observability::Logger* log);

  // Ends the call, unless it has ended: then nothing is done. If `status` is
  // OK, `write` fills the response before.
  void End(
      const absl::Status& status, absl::FunctionRef<void()> write = [] {});

  void OnCancel() override;
  void OnDone() override;

 private:
  explicit ChangeCall(grpc::CallbackServerContext* context)
      : context_(context) {}

  grpc::CallbackServerContext* const context_;  // Until the call has ended.
  std::optional<observability::RequestRecord> record_;
  std::atomic<bool> ended_{false};
  std::shared_ptr<ChangeCall> self_;  // Until gRPC is done with it.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CHANGE_CALL_H_
