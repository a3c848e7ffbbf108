#ifndef SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_

#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/load_reports.h"
#include "server/rpc/raw_service.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {

// A unary call that an `Asked` answers: a prediction in a service's messages,
// such as ProtoPrediction.
template <typename Asked>
class AskCall final : public UnaryCall {
 public:
  // `extra` are the last arguments of Asked's constructor. `environment`
  // outlives the call.
  template <typename... Extra>
  AskCall(const prediction::TransportEnvironment& environment,
          observability::Method method, security::Caller caller,
          grpc::ByteBuffer* request, const RawCall& call, SendWatch* sends,
          Extra... extra)
      : UnaryCall(call.context, sends),
        sent_(*call.response),
        asked_(
            environment, method, InfoOf(*call.context, std::move(caller)),
            request,
            [this, &environment, context = call.context](
                const absl::Status& status, typename Asked::Response* answer) {
              if (status.ok()) Serialize(*answer, &sent_);
              *answer = {};  // The bytes may take long to be sent.
              if (environment.load_report) {
                context->AddTrailingMetadata(kLoadReportTrailer,
                                             environment.load_report(status));
              }
              Send(status);
            },
            extra...) {}

  void Run() { asked_.Run(absl::OkStatus()); }
  void OnCancel() override { asked_.Cancel(); }

 private:
  grpc::ByteBuffer& sent_;  // The response's bytes.
  Asked asked_;             // Last: it uses everything above.
};

// A service that asks models about images, in calls and in streams.
// Thread-safe.
class PredictionService : public RawService {
 public:
  // From now on streams get the notice to end. New ones are answered
  // UNAVAILABLE with reason DRAINING, to be tried elsewhere at once. Other
  // calls go on, because their clients may not have read the GOAWAY yet.
  void StartDraining();
  // Ends calls whose answers are not read, and idle streams. To be called again
  // and again, by a thread that is not gRPC's.
  void EndUnreadCalls();

 protected:
  // `name` is the service's full one. A call whose client has not taken its
  // answer after `send_timeout` is ended by EndUnreadCalls().
  PredictionService(const char* name,
                    prediction::TransportEnvironment environment,
                    absl::Duration send_timeout);

  // Whether the caller has `scope`; the record gets its name.
  absl::Status CheckScope(const RawCall& call, security::Scope scope,
                          observability::RequestRecord* record) const;
  // Whether the caller may read.
  absl::Status CheckReader(const RawCall& call,
                           observability::RequestRecord* record) const;
  // An AskCall for a caller who may infer, running.
  template <typename Asked, typename... Extra>
  Reactor* Predict(observability::Method method, const RawCall& call,
                   Extra... extra) {
    return Admit(
        method, call, [&](security::Caller caller, grpc::ByteBuffer* request) {
          auto* made = new AskCall<Asked>(env_, method, std::move(caller),
                                          request, call, &sends_, extra...);
          made->Run();
          return made;
        });
  }
  // Opens a stream for a caller who has `scope`. `take`: see StreamCall. The
  // options' rights and `serving` are set here.
  StreamReactor* Open(grpc::CallbackServerContext* context,
                      StreamCall::Options options, StreamCall::Take take,
                      security::Scope scope = security::Scope::kInfer);
  SendWatch* sends() { return &sends_; }

  const prediction::TransportEnvironment env_;

 private:
  // Calls `start`, which makes the call that answers, for a caller who may
  // infer. `request` may be emptied.
  Reactor* Admit(
      observability::Method method, const RawCall& call,
      absl::FunctionRef<Reactor*(security::Caller, grpc::ByteBuffer* request)>
          start) const;

  SendWatch sends_;
  StreamSet streams_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PREDICTION_SERVICE_H_
