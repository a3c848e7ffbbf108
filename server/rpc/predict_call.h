#ifndef SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
#define SFMAMBA_SERVER_RPC_PREDICT_CALL_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/prediction/prediction.h"
#include "server/rpc/from_proto.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/to_proto.h"

namespace sfmamba::rpc {

// What a prediction wants to know of the call that it came by.
inline prediction::PredictionRequest WithCall(
    const grpc::CallbackServerContext& context, observability::Method method,
    prediction::PredictionRequest request) {
  request.method = method;
  request.peer = context.peer();
  request.traceparent = TraceparentOf(context);
  if (context.deadline() != std::chrono::system_clock::time_point::max()) {
    request.deadline = absl::FromChrono(context.deadline());
  }
  return request;
}

// A unary call that asks a model about images: translates its message into a
// prediction and the answers back. Deletes itself once gRPC is done with it.
//
// `Answer` is the alternative of prediction::Answer that the task gives.
template <typename Request, typename Response, typename Answer>
class PredictCall final : public grpc::ServerUnaryReactor,
                          private prediction::ResponseWriter {
 public:
  PredictCall(observability::Method method,
              const prediction::PredictionEnvironment& environment,
              grpc::CallbackServerContext* context, const Request* request,
              Response* response)
      : context_(*context),
        request_(*request),
        response_(*response),
        prediction_(environment,
                    WithCall(*context, method, FromProto(*request)), this) {}

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving) { prediction_.Start(serving); }

  void OnCancel() override { prediction_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Start(const std::string& model, int images) override {
    response_.set_request_id(request_.request_id());
    response_.set_model(model);
    for (int i = 0; i < images; ++i) response_.add_results();
  }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    auto* result = response_.mutable_results(i);
    ToProto(std::get<Answer>(std::move(answer)), result);
    return result->ByteSizeLong();
  }
  void SetError(int i, const absl::Status& error) override {
    *response_.mutable_results(i)->mutable_error() = ToRpcStatus(error);
  }
  void SetTiming(const prediction::Timing& timing) override {
    ToProto(timing, response_.mutable_timing());
  }
  int64_t Bytes() const override { return response_.ByteSizeLong(); }
  void Done(const absl::Status& status) override {
    Finish(EndCall(status, &context_));
  }

  grpc::CallbackServerContext& context_;
  const Request& request_;
  Response& response_;
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

using ClassifyCall = PredictCall<v1::ClassifyRequest, v1::ClassifyResponse,
                                 prediction::ClassificationAnswer>;
using DetectCall = PredictCall<v1::DetectRequest, v1::DetectResponse,
                               prediction::DetectionAnswer>;
using SegmentCall = PredictCall<v1::SegmentRequest, v1::SegmentResponse,
                                prediction::SegmentationAnswer>;

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
