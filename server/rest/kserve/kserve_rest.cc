#include "server/rest/kserve/kserve_rest.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/steady_clock.h"
#include "nlohmann/json.hpp"
#include "server/errors/reasons.h"
#include "server/kserve/infer_parameters.h"
#include "server/kserve/inference.h"
#include "server/kserve/published_model.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/kserve/request.h"
#include "server/rest/kserve/response.h"

namespace sfmamba::rest {
namespace {

using http::HttpRequest;
using http::HttpResponse;
using observability::Method;

constexpr size_t kMaxPathShown = 200;

prediction::TransportEnvironment WithLimit(
    int64_t max_response_bytes, prediction::TransportEnvironment environment) {
  environment.max_response_bytes =
      std::min(environment.max_response_bytes, max_response_bytes);
  return environment;
}

bool IsFromPage(const HttpRequest& request) {
  return request.headers.count("origin") > 0;
}

HttpResponse ArrayResponse(const std::vector<std::string>& elements) {
  return JsonResponse(absl::StrCat("[", absl::StrJoin(elements, ","), "]"));
}

// The protocol's answer to whether something is live or ready.
HttpResponse Probe(bool good, const nlohmann::json& body) {
  HttpResponse response = JsonResponse(body.dump());
  response.status = good ? 200 : 400;
  return response;
}

// A question about the route's model.
template <typename Request>
Request Named(const KserveRoute& route) {
  Request request;
  request.set_name(route.model);
  request.set_version(route.version);
  return request;
}

// A request's header; none if it is not there.
std::optional<absl::string_view> FindHeader(const HttpRequest& request,
                                            const char* name) {
  const auto found = request.headers.find(name);
  if (found == request.headers.end()) return std::nullopt;
  return found->second;
}

// A request to infer. It lives until its answer is sent, so that the prediction
// counts what it holds until then.
class InferCall {
 public:
  // Starts the prediction, which answers the exchange and is cancelled if the
  // client goes. `environment` outlives it.
  static void Start(const prediction::TransportEnvironment& environment,
                    rpc::CallInfo call, KserveRequest request,
                    std::unique_ptr<http::Exchange> exchange) {
    const auto self = std::make_shared<InferCall>();
    self->outputs_ = std::move(request.outputs);
    self->exchange_ = std::move(exchange);
    // The inference's callback keeps this alive until the inference has ended.
    self->inference_ = std::make_unique<kserve::Inference>(
        environment, Method::kModelInfer, std::move(call), &request.message,
        [self](const absl::Status& status,
               inference::packed::ModelInferResponse* response) {
          const auto exchange = std::move(self->exchange_);
          exchange->Answer(status.ok() ? InferResponse(self->outputs_, response)
                                       : KserveError(status),
                           [self] {});
        });
    self->exchange_->OnCancel([weak = std::weak_ptr<InferCall>(self)] {
      const std::shared_ptr<InferCall> living = weak.lock();
      if (living != nullptr) living->inference_->Cancel();
    });
    self->inference_->Run(absl::OkStatus());
  }

 private:
  OutputForms outputs_;
  std::unique_ptr<http::Exchange> exchange_;  // Null once it is answered.
  std::unique_ptr<kserve::Inference> inference_;
};

// A request to load or to unload a model. It holds all that the change's end
// needs: that may come after the server is gone, when answering has no effect.
struct ChangeCall {
  ChangeCall(Method method, const prediction::TransportEnvironment& environment,
             std::unique_ptr<http::Exchange> made_exchange)
      : exchange(std::move(made_exchange)),
        record(method, exchange->request(), environment) {
    record.set_no_model();
  }
  void End(const absl::Status& status) {
    const absl::Status counted = record.Finish(status);
    exchange->Answer(status.ok() ? HttpResponse() : KserveError(counted));
  }

  const std::unique_ptr<http::Exchange> exchange;
  HttpRecord record;
  std::atomic<bool> client_has_gone{false};
};

const google::protobuf::Message& Shown(
    const inference::ModelConfigResponse& response) {
  return response.config();
}
const google::protobuf::Message& Shown(
    const google::protobuf::Message& response) {
  return response;
}

}  // namespace

KserveRest::KserveRest(prediction::TransportEnvironment environment,
                       Options options, std::function<absl::Status()> serving)
    : env_(std::move(environment)),
      json_env_(WithLimit(options.max_json_answer_bytes, env_)),
      options_(std::move(options)),
      serving_(std::move(serving)),
      queries_(env_),
      control_(env_, options_.changes) {}

void KserveRest::Handle(std::unique_ptr<http::Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  const std::optional<KserveRoute> route = FindKserveRoute(request.path);
  HttpResponse response;
  if (!route.has_value()) {
    response = KserveError(absl::NotFoundError(absl::StrCat(
        "nothing is served at ", request.path.substr(0, kMaxPathShown))));
  } else if (!route->Serves(request.method)) {
    response = OtherMethod(request.method, route->methods, request.path);
  } else if (route->action == KserveAction::kInfer) {
    return Infer(*route, std::move(exchange));
  } else if (route->action == KserveAction::kLoad ||
             route->action == KserveAction::kUnload) {
    return Change(*route, std::move(exchange));
  } else {
    response = Answer(*route, request);
  }
  exchange->Answer(std::move(response));
}

void KserveRest::Infer(const KserveRoute& route,
                       std::unique_ptr<http::Exchange> exchange) {
  HttpRequest& request = exchange->request();
  absl::StatusOr<rpc::CallInfo> call = CallOf(request, base::SteadyNow());
  absl::Status status = serving_();
  status.Update(call.status());
  const int64_t bytes = request.body.size();
  if (status.ok()) {
    absl::StatusOr<KserveRequest> asked = ReadKserveRequest(
        route.model, route.version,
        FindHeader(request, "inference-header-content-length"),
        std::move(request.body), options_.max_body_bytes, &env_.memory);
    if (asked.ok()) {
      return InferCall::Start(asked->outputs.AnyJson() ? json_env_ : env_,
                              *std::move(call), *std::move(asked),
                              std::move(exchange));
    }
    status = asked.status();
  }
  HttpRecord record(Method::kModelInfer, request, env_,
                    bytes - static_cast<int64_t>(request.body.size()));
  exchange->Answer(KserveError(record.Finish(status)));
}

void KserveRest::Change(const KserveRoute& route,
                        std::unique_ptr<http::Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  const bool load = route.action == KserveAction::kLoad;
  const std::string who = admin::WhoIs(request.caller, request.peer);
  const bool from_page = IsFromPage(request);
  const std::string body = request.body;
  const auto call = std::make_shared<ChangeCall>(
      load ? Method::kRepositoryModelLoad : Method::kRepositoryModelUnload,
      env_, std::move(exchange));
  const admin::ModelChanges::Done done(
      [call](const absl::Status& status) { call->End(status); },
      [call] { return call->client_has_gone.load(); });
  call->exchange->OnCancel([weak = std::weak_ptr<ChangeCall>(call)] {
    if (const auto gone = weak.lock()) gone->client_has_gone = true;
  });
  // Without tokens, callers on this machine may administer. A web page in a
  // browser here must not do so in its reader's name.
  absl::Status status = from_page ? server::OriginRefused() : control_.Check();
  if (status.ok()) status = serving_();
  if (!status.ok()) return done(status);
  if (load) {
    const auto asked = ReadLoadBody(route.model, body);
    if (!asked.ok()) return done(asked.status());
    return control_.Load(who, *asked, done);
  }
  const auto asked = ReadUnloadBody(route.model, body);
  if (!asked.ok()) return done(asked.status());
  control_.Unload(who, *asked, done);
}

HttpResponse KserveRest::Answer(const KserveRoute& route,
                                const HttpRequest& request) const {
  switch (route.action) {
    case KserveAction::kServerLive:
      return Probe(options_.live(), {{"live", options_.live()}});
    case KserveAction::kServerReady:
      return Probe(options_.ready(), {{"ready", options_.ready()}});
    case KserveAction::kServerMetadata: {
      inference::ServerMetadataResponse message;
      kserve::DescribeServer(options_.version, &message);
      return JsonResponse(MessageJson(message));
    }
    case KserveAction::kModelReady:
      return ModelReady(route);
    case KserveAction::kIndex:
      return Index(request);
    case KserveAction::kSharedMemory:
      return KserveError(kserve::SharedMemoryRemoved());
    case KserveAction::kSettings:
      return Settings(route, request);
    case KserveAction::kModelMetadata:
      return Describe(Method::kModelMetadata, &kserve::ModelQueries::Metadata,
                      route, request);
    case KserveAction::kModelConfig:
      return Describe(Method::kModelConfig, &kserve::ModelQueries::Config,
                      route, request);
    default:
      return Describe(Method::kModelStatistics,
                      &kserve::ModelQueries::Statistics, route, request);
  }
}

template <typename Request, typename Response>
HttpResponse KserveRest::Describe(Method method, Query<Request, Response> query,
                                  const KserveRoute& route,
                                  const HttpRequest& request) const {
  HttpRecord record(method, request, env_);
  Response response;
  absl::Status status = serving_();
  if (status.ok()) {
    status = (queries_.*query)(Named<Request>(route), &response, &record);
  }
  status = record.Finish(status);
  if (!status.ok()) return KserveError(status);
  return JsonResponse(MessageJson(Shown(response)));
}

HttpResponse KserveRest::ModelReady(const KserveRoute& route) const {
  const auto asked = Named<inference::ModelReadyRequest>(route);
  inference::ModelReadyResponse message;
  const absl::Status status = queries_.Ready(asked, &message);
  if (!status.ok()) return KserveError(status);
  const bool is_ready = message.ready() && serving_().ok();
  return Probe(is_ready, {{"name", route.model}, {"ready", is_ready}});
}

HttpResponse KserveRest::Settings(const KserveRoute& route,
                                  const HttpRequest& request) const {
  if (!route.model.empty()) {
    const absl::Status found =
        kserve::FindModel(env_, route.model, route.version, "name").status();
    if (!found.ok()) return KserveError(found);
  }
  if (request.method == "POST") {
    return KserveError(server::NotSupported("a change of settings over REST"));
  }
  return JsonResponse("{}");
}

HttpResponse KserveRest::Index(const HttpRequest& request) const {
  HttpRecord record(Method::kRepositoryIndex, request, env_);
  record.set_no_model();
  const auto asked = ReadIndexBody(request.body);
  inference::RepositoryIndexResponse index;
  absl::Status status = serving_();
  status.Update(asked.status());
  if (status.ok()) status = queries_.Index(*asked, &index, &record);
  status = record.Finish(status);
  if (!status.ok()) return KserveError(status);
  std::vector<std::string> models;
  for (const auto& model : index.models()) models.push_back(MessageJson(model));
  return ArrayResponse(models);
}

}  // namespace sfmamba::rest
