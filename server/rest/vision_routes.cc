#include "server/rest/vision_routes.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "server/observability/metrics.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/predict_exchange.h"
#include "server/rest/prediction_body.h"
#include "server/rest/query_fields.h"
#include "server/rest/response_body.h"
#include "server/rpc/describe_model.h"

namespace sfmamba::rest {
namespace {

using observability::Method;

using ClassifyExchange =
    PredictExchange<v1::ClassifyRequest, v1::ClassifyResponse,
                    prediction::ClassificationAnswer>;
using DetectExchange = PredictExchange<v1::DetectRequest, v1::DetectResponse,
                                       prediction::DetectionAnswer>;
using SegmentExchange = PredictExchange<v1::SegmentRequest, v1::SegmentResponse,
                                        prediction::SegmentationAnswer>;

constexpr absl::string_view kBase = "/v1/";

bool IsRead(const http::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

Encoding EncodingOf(const http::HttpRequest& request) {
  return EncodingFor(Header(request, "accept"));
}

void RefuseMethod(http::Exchange* exchange, absl::string_view allowed) {
  exchange->Answer(OtherMethod(exchange->request().method, allowed), [] {});
}

// Answers a request that asks about models.
void Answer(const absl::Status& status,
            const google::protobuf::Message& message,
            http::Exchange* exchange) {
  const Encoding encoding = EncodingOf(exchange->request());
  exchange->Answer(
      status.ok() ? MessageResponse(message, encoding) : ErrorResponse(status),
      [] {});
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
                        ":classify, :detect or :segment"),
        [] {});
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
