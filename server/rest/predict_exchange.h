#ifndef SFMAMBA_SERVER_REST_PREDICT_EXCHANGE_H_
#define SFMAMBA_SERVER_REST_PREDICT_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/errors/reasons.h"
#include "server/http/exchange.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/rest/error_response.h"
#include "server/rest/response_body.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/to_proto.h"
#include "server/rpc/wire/received_request.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// A request that asks a model about images, as it came.
struct PredictionBody {
  grpc::ByteBuffer message;  // The request, serialized.
  std::string model;         // The path's model.
  rpc::CallInfo call;
  Encoding encoding = Encoding::kJson;  // The answer's.
  // Memory that is held until the pictures are read, beside the message's.
  server::MemoryHold surplus;
  absl::Status status;  // Why it is refused, or OK.
};

// Answers an exchange by a prediction: the words are those of
// rpc::PredictCall. Each image's answer is written in the response's encoding
// as soon as it is there, so that its true size is held and limited. Lives
// until its answer is sent.
template <typename Request, typename Response, typename Answer>
class PredictExchange final : private prediction::ResponseWriter,
                              public std::enable_shared_from_this<
                                  PredictExchange<Request, Response, Answer>> {
 public:
  static void Run(observability::Method method,
                  const prediction::PredictionEnvironment& environment,
                  std::unique_ptr<http::Exchange> exchange,
                  PredictionBody body) {
    const auto call = std::make_shared<PredictExchange>(
        method, environment, std::move(exchange), std::move(body));
    call->self_ = call;
    call->exchange_->OnCancel([weak = call->weak_from_this()] {
      if (const auto living = weak.lock()) living->prediction_.Cancel();
    });
    call->prediction_.Start(call->Check());
  }

  // For Run() only.
  PredictExchange(observability::Method method,
                  const prediction::PredictionEnvironment& environment,
                  std::unique_ptr<http::Exchange> exchange, PredictionBody body)
      : body_(std::move(body)),
        exchange_(std::move(exchange)),
        request_(&body_.message, environment.limits.max_images),
        response_(body_.encoding),
        prediction_(environment, Translate(method), this) {}

 private:
  prediction::PredictionRequest Translate(observability::Method method) {
    prediction::PredictionRequest request =
        request_.Translate(method, body_.call);
    request.model = body_.model;
    return request;
  }

  absl::Status Check() const {
    if (!body_.status.ok()) return body_.status;
    if (!request_.status().ok()) return request_.status();
    const std::string& model = request_.message().model();
    if (model.empty() || model == body_.model ||
        absl::StrCat("models/", model) == body_.model) {
      return absl::OkStatus();
    }
    return server::InvalidField(
        "model", absl::StrCat("got \"", model, "\", expected none or \"",
                              body_.model, "\", which the path names"));
  }

  void Start(const std::string& model, int images) override {
    rest_.set_request_id(request_.message().request_id());
    rest_.set_model(model);
    response_.Start(images);
  }
  void ReleaseRequest() override {
    request_.ReleasePictures();
    body_.surplus.Release();
  }
  int64_t SetAnswer(int i, prediction::Answer answer) override {
    Result result;
    rpc::ToProto(std::get<Answer>(std::move(answer)), &result);
    return response_.SetResult(i, result);
  }
  void SetError(int i, const absl::Status& error) override {
    Result result;
    *result.mutable_error() = rpc::ToRpcStatus(error);
    response_.SetResult(i, result);
  }
  void SetTiming(const prediction::Timing& timing) override {
    rpc::ToProto(timing, rest_.mutable_timing());
  }
  int64_t Bytes() const override { return response_.Bytes(rest_); }
  void Done(const absl::Status& status) override {
    const auto exchange = std::move(exchange_);
    exchange->Answer(
        status.ok() ? response_.Take(rest_) : ErrorResponse(status),
        // Until it is sent it counts as held memory.
        [self = std::move(self_)] {});
  }

  using Result = std::decay_t<decltype(Response().results(0))>;

  std::shared_ptr<PredictExchange> self_;  // Until it is answered.
  PredictionBody body_;
  std::unique_ptr<http::Exchange> exchange_;  // Null once answered.
  rpc::ReceivedRequest<Request> request_;
  ResponseBody response_;
  Response rest_;                      // The response without its results.
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_PREDICT_EXCHANGE_H_
