#include "server/rest/vision_routes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/errors/reasons.h"
#include "server/http/exchange.h"
#include "server/observability/metrics.h"
#include "server/prediction/prediction.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/prediction_body.h"
#include "server/rest/query_fields.h"
#include "server/rest/response_body.h"
#include "server/rpc/call.h"
#include "server/rpc/describe_model.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/wire/received_request.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {
namespace {

using observability::Method;

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
template <typename Request, typename Response>
class PredictExchange final
    : private prediction::ResponseWriter,
      public std::enable_shared_from_this<PredictExchange<Request, Response>> {
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
    return response_.SetResult(i, std::get<Result>(answer.result));
  }
  void SetError(int i, const absl::Status& error) override {
    Result result;
    *result.mutable_error() = rpc::ToRpcStatus(error);
    response_.SetResult(i, result);
  }
  void SetTiming(const v1::Timing& timing) override {
    *rest_.mutable_timing() = timing;
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

using ClassifyExchange =
    PredictExchange<v1::ClassifyRequest, v1::ClassifyResponse>;
using DetectExchange = PredictExchange<v1::DetectRequest, v1::DetectResponse>;
using SegmentExchange =
    PredictExchange<v1::SegmentRequest, v1::SegmentResponse>;

constexpr absl::string_view kBase = "/v1/";

bool IsRead(const http::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

Encoding EncodingOf(const http::HttpRequest& request) {
  return EncodingFor(Header(request, "accept"));
}

void RefuseMethod(http::Exchange* exchange, absl::string_view allowed) {
  exchange->Answer(OtherMethod(exchange->request().method, allowed));
}

// Answers a request that asks about models.
void Answer(const absl::Status& status,
            const google::protobuf::Message& message,
            http::Exchange* exchange) {
  const Encoding encoding = EncodingOf(exchange->request());
  exchange->Answer(status.ok() ? MessageResponse(message, encoding)
                               : ErrorResponse(status));
}

}  // namespace

VisionRoutes::VisionRoutes(prediction::PredictionEnvironment environment,
                           std::function<absl::Status()> serving)
    : env_(std::move(environment)), serving_(std::move(serving)) {}

void VisionRoutes::Handle(std::unique_ptr<http::Exchange> exchange) const {
  const http::HttpRequest& request = exchange->request();
  // The path is "models/{id}:{verb}"; without a verb it asks for a model, or
  // for the list of all.
  const absl::string_view path =
      absl::string_view(request.path).substr(kBase.size());
  const size_t colon = path.rfind(':');
  const std::string name(path.substr(0, colon));
  if (colon == absl::string_view::npos) {
    if (!IsRead(request)) {
      RefuseMethod(exchange.get(), "GET, HEAD, OPTIONS");
    } else if (name == "models") {
      ListModels(std::move(exchange));
    } else {
      GetModel(name, std::move(exchange));
    }
    return;
  }
  const absl::string_view verb = path.substr(colon + 1);
  const bool is_known =
      verb == "classify" || verb == "detect" || verb == "segment";
  if (!is_known) {
    exchange->Answer(
        RefusalResponse(404,
                        "got another verb after the model's name, expected "
                        ":classify, :detect or :segment"));
  } else if (request.method != "POST" && request.method != "PUT") {
    RefuseMethod(exchange.get(), "POST, PUT, OPTIONS");
  } else if (verb == "classify") {
    Predict<ClassifyExchange, v1::ClassifyRequest>(Method::kClassify, name,
                                                   std::move(exchange));
  } else if (verb == "detect") {
    Predict<DetectExchange, v1::DetectRequest>(Method::kDetect, name,
                                               std::move(exchange));
  } else {
    Predict<SegmentExchange, v1::SegmentRequest>(Method::kSegment, name,
                                                 std::move(exchange));
  }
}

template <typename Call, typename Request>
void VisionRoutes::Predict(Method method, const std::string& model,
                           std::unique_ptr<http::Exchange> exchange) const {
  http::HttpRequest& request = exchange->request();
  PredictionBody body;
  body.model = model;
  body.encoding = EncodingOf(request);
  absl::StatusOr<rpc::CallInfo> call = CallOf(request, base::SteadyNow());
  body.call.peer = request.peer;
  body.call.caller = request.caller;
  body.status = serving_();
  if (body.status.ok()) body.status = call.status();
  if (call.ok()) body.call = *std::move(call);
  if (body.status.ok()) {
    Request read;
    body.status =
        ReadBody(&request, &env_.memory, &read, &body.message, &body.surplus);
  }
  Call::Run(method, env_, std::move(exchange), std::move(body));
}

void VisionRoutes::GetModel(const std::string& name,
                            std::unique_ptr<http::Exchange> exchange) const {
  const http::HttpRequest& request = exchange->request();
  HttpRecord record(Method::kGetModel, request, env_);
  v1::Model model;
  absl::Status status = serving_();
  if (status.ok()) status = SetFromQuery(request.query, {});
  if (status.ok()) {
    const auto version = env_.repository.Find(name, "name");
    status = version.status();
    if (status.ok()) {
      record.set_model((*version)->name(), (*version)->metrics());
      rpc::ToProto(**version, /*with_classes=*/true, &model);
    }
  }
  Answer(record.Finish(status), model, exchange.get());
}

void VisionRoutes::ListModels(std::unique_ptr<http::Exchange> exchange) const {
  const http::HttpRequest& request = exchange->request();
  HttpRecord record(Method::kListModels, request, env_);
  record.set_no_model();
  v1::ListModelsRequest asked;
  v1::ListModelsResponse page;
  absl::Status status = serving_();
  if (status.ok()) status = SetFromQuery(request.query, {&asked});
  if (status.ok()) {
    status = rpc::FillPage(asked, env_.repository.List(), &page);
  }
  Answer(record.Finish(status), page, exchange.get());
}

}  // namespace sfmamba::rest
