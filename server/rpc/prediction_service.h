#ifndef SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/raw_service.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {

// A service that asks models about images, in calls and in streams.
// Thread-safe.
class PredictionService : public RawService {
 public:
  // From now on new calls are answered UNAVAILABLE with reason DRAINING, to be
  // tried elsewhere at once, and streams are told to end.
  void StartDraining();
  // Ends calls whose answers are not read, and idle streams. To be called again
  // and again, by a thread that is not gRPC's.
  void EndUnreadCalls();

 protected:
  // Makes the call that answers, for a caller who may infer. `request` may be
  // emptied.
  using StartCall =
      absl::FunctionRef<Reactor*(security::Caller, grpc::ByteBuffer* request)>;
  using OpenStream =
      absl::FunctionRef<std::shared_ptr<StreamCall>(StreamRights)>;

  // `name` is the service's full one. A call whose client has not taken its
  // answer after `send_timeout` is ended by EndUnreadCalls().
  PredictionService(const char* name,
                    prediction::TransportEnvironment environment,
                    absl::Duration send_timeout);

  // Whether the caller has `scope`; the record gets its name.
  absl::Status CheckScope(const RawCall& call, security::Scope scope,
                          observability::RequestRecord* record) const;
  // Whether the caller may read, and the server serves.
  absl::Status CheckReader(const RawCall& call,
                           observability::RequestRecord* record) const;
  Reactor* Predict(observability::Method method, const RawCall& call,
                   StartCall start) const;
  StreamReactor* Open(observability::Method method,
                      grpc::CallbackServerContext* context, OpenStream open);

  const prediction::TransportEnvironment env_;
  SendWatch sends_;

 private:
  StreamSet streams_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_
