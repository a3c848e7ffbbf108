#ifndef SFMAMBA_SERVER_RPC_PROTO_PREDICTION_H_
#define SFMAMBA_SERVER_RPC_PROTO_PREDICTION_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/wire/received_request.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// A request of sfmamba.v1 from its bytes to its response: a prediction, asked
// and answered in protos. A message that is malformed is answered, counted and
// logged like any other. Its life is a prediction's.
template <typename Request, typename ResponseType>
class ProtoPrediction final : private prediction::ResponseWriter {
 public:
  using Response = ResponseType;
  // Called exactly once, as the last; `response` is complete if `status` is
  // OK. May destroy the prediction.
  using Ended =
      absl::AnyInvocable<void(const absl::Status& status, Response* response)>;

  // Takes the bytes of `message`. `environment` outlives this.
  ProtoPrediction(const prediction::PredictionEnvironment& environment,
                  observability::Method method, prediction::CallInfo call,
                  grpc::ByteBuffer* message, Ended ended)
      : request_(message, environment.limits.max_images),
        ended_(std::move(ended)),
        prediction_(environment, request_.Translate(method, std::move(call)),
                    this) {}

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving) {
    prediction_.Start(serving.ok() ? request_.status() : serving);
  }
  void Cancel() { prediction_.Cancel(); }

 private:
  void Start(const std::string& model, int images) override {
    response_.set_request_id(request_.message().request_id());
    response_.set_model(model);
    for (int i = 0; i < images; ++i) response_.add_results();
  }
  // Frees what the pictures arrived in; parameters stay readable.
  void ReleaseRequest() override { request_.ReleasePictures(); }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    auto& result = *response_.mutable_results(i);
    using Result = std::decay_t<decltype(result)>;
    result = std::get<Result>(std::move(answer.result));
    return result.ByteSizeLong();
  }
  void SetError(int i, const absl::Status& error) override {
    *response_.mutable_results(i)->mutable_error() = ToRpcStatus(error);
  }
  void SetTiming(const v1::Timing& timing) override {
    *response_.mutable_timing() = timing;
  }
  int64_t Bytes() const override { return response_.ByteSizeLong(); }
  void Done(const absl::Status& status) override {
    Ended ended = std::move(ended_);  // It may destroy this.
    ended(status, &response_);
  }

  ReceivedRequest<Request> request_;
  Response response_;
  Ended ended_;
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

using Classification =
    ProtoPrediction<v1::ClassifyRequest, v1::ClassifyResponse>;
using Detection = ProtoPrediction<v1::DetectRequest, v1::DetectResponse>;
using Segmentation = ProtoPrediction<v1::SegmentRequest, v1::SegmentResponse>;

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PROTO_PREDICTION_H_
