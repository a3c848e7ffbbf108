#ifndef SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_
#define SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_

#include <atomic>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/call/method_table.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::rpc {

using Reactor = grpc::ServerUnaryReactor;

// A call of a method with one request and one response, as gRPC hands it over.
struct RawCall {
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// Has the table answer a call of `method`, one of its own. Returns gRPC's side
// of the call, which deletes itself once the response is sent. All arguments
// outlive the call.
Reactor* Serve(const call::MethodTable& methods, const call::Method& method,
               const RawCall& raw, SendWatch* sends);

// Serves the methods of one service of a table over gRPC. They get the bytes of
// their messages, so that a caller is checked before anything is parsed, and a
// malformed message is answered and counted like any other. Thread-safe.
class MethodService final : public grpc::Service {
 public:
  // `service` is the full name. A call whose client has not taken its response
  // after `send_timeout` is ended by EndUnreadCalls(). `methods` outlives this.
  MethodService(const call::MethodTable& methods, absl::string_view service,
                absl::Duration send_timeout);

  // From now on streams get the notice to end, and new ones are answered
  // UNAVAILABLE with reason DRAINING, so that clients try elsewhere at once.
  // Other calls go on, because their clients may not have read the GOAWAY yet.
  void StartDraining();
  // Ends calls whose responses are not read, and idle streams. Called again and
  // again, by a thread that is not gRPC's.
  void EndUnreadCalls();

 private:
  void AddHandler(const call::Method& method,
                  grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler);
  // Serves a stream's method: a `Stream` takes the messages of each call.
  template <typename Stream>
  void AddStream(const call::Method& method);
  // UNAVAILABLE, DRAINING, while draining.
  absl::Status CheckServing() const;

  const prediction::TransportEnvironment& env_;
  std::deque<std::string> paths_;  // Methods' paths. gRPC points to them.
  std::atomic<bool> draining_{false};
  SendWatch sends_;
  StreamSet streams_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_
