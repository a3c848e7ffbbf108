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

// The parts of a unary call, as passed in by gRPC.
struct RawCall {
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// Passes a call of `method` to `methods`, which must contain `method`. Returns
// the call's gRPC reactor, which deletes itself after the response is sent. All
// arguments must outlive the call.
Reactor* Serve(const call::MethodTable& methods, const call::Method& method,
               const RawCall& raw, SendWatch* sends);

// Serves the methods of one service of a MethodTable over gRPC. gRPC passes the
// messages to this class as unparsed bytes. The server can therefore check the
// caller before it parses a message. It can also count a malformed message and
// answer it with the server's own error. Thread-safe.
class MethodService final : public grpc::Service {
 public:
  // `service` is the full service name. If a client has not read a response
  // after `send_timeout`, EndUnreadCalls() ends the call. `methods` must
  // outlive this object.
  MethodService(const call::MethodTable& methods, absl::string_view service,
                absl::Duration send_timeout);

  // Starts draining. Open StreamPredict streams receive a drain notice. New
  // requests on streams fail with UNAVAILABLE and reason DRAINING, so that
  // clients switch to another server. Unary calls are still answered. Their
  // clients switch to another server when they receive the GOAWAY frame
  // (HTTP/2) that GrpcPort::Shutdown() sends.
  void StartDraining();
  // Ends idle streams. Also ends calls whose clients do not read the response.
  // Must be called periodically, by a thread that does not belong to gRPC.
  void EndUnreadCalls();

 private:
  void AddHandler(const call::Method& method,
                  grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler);
  // Registers a streaming method. A `Stream` object handles the messages of
  // each call.
  template <typename Stream>
  void AddStream(const call::Method& method);
  // Returns UNAVAILABLE with reason DRAINING while the server drains. Otherwise
  // returns OK.
  absl::Status CheckServing() const;

  const prediction::TransportEnvironment& env_;
  // The paths of the methods. gRPC keeps pointers to these strings.
  std::deque<std::string> paths_;
  std::atomic<bool> draining_{false};
  SendWatch sends_;
  StreamSet streams_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_
