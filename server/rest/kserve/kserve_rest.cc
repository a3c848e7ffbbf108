#include "server/rest/kserve/kserve_rest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"
#include "nlohmann/json.hpp"
#include "server/errors/reasons.h"
#include "server/rest/call_headers.h"
#include "server/rest/error_response.h"
#include "server/rest/kserve/control_body.h"
#include "server/rest/kserve/infer_call.h"
#include "server/rest/kserve/message_json.h"
#include "server/rest/kserve/request.h"
#include "server/rest/kserve/response.h"

namespace sfmamba::rest {
namespace {

using http::HttpRequest;
using http::HttpResponse;
using observability::Method;
using observability::RequestRecord;

constexpr size_t kMaxIndexBytes = 64 << 10;
constexpr size_t kMaxPathShown = 200;

prediction::TransportEnvironment WithLimit(
    int64_t max_response_bytes, prediction::TransportEnvironment environment) {
  environment.max_response_bytes =
      std::min(environment.max_response_bytes, max_response_bytes);
  return environment;
}

// The protocol's answer to whether something is live or ready.
HttpResponse Probe(bool good) {
  HttpResponse response;
  response.status = good ? 200 : 400;
  return response;
}

HttpResponse Message(const absl::Status& status,
                     const google::protobuf::Message& message) {
  return status.ok() ? JsonResponse(MessageJson(message)) : KserveError(status);
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

// Reads {"ready": true}; an empty body asks for all.
absl::StatusOr<bool> ReadOnlyReady(const std::string& body) {
  if (body.empty()) return false;
  if (body.size() > kMaxIndexBytes) {
    return server::MalformedMessage(absl::StrCat("got JSON of ", body.size(),
                                                 " bytes, expected at most ",
                                                 kMaxIndexBytes));
  }
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) {
    return server::MalformedMessage("got no JSON object, expected one");
  }
  const auto ready = json.find("ready");
  if (ready == json.end()) return false;
  if (!ready->is_boolean()) {
    return server::InvalidField(
        "ready", absl::StrCat("got a value of type ", ready->type_name(),
                              ", expected a boolean"));
  }
  return ready->get<bool>();
}

}  // namespace

KserveRest::KserveRest(prediction::TransportEnvironment environment,
                       Options options)
    : env_(std::move(environment)),
      json_env_(WithLimit(options.max_json_answer_bytes, env_)),
      options_(std::move(options)),
      queries_(env_),
      control_(env_, options_.changes) {}

RequestRecord KserveRest::Record(Method method, int64_t bytes,
                                 const HttpRequest& request) const {
  return RequestRecord(method, bytes, request.peer,
                       Header(request, "traceparent"), &env_.metrics,
                       &env_.log);
}

HttpResponse KserveRest::Refuse(Method method, const HttpRequest& request,
                                const absl::Status& status) const {
  RequestRecord record = Record(method, request.body.size(), request);
  record.set_client(request.caller.name);
  record.set_no_model();
  return KserveError(record.Finish(status));
}

void KserveRest::Handle(std::unique_ptr<http::Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  const std::optional<KserveRoute> route = FindKserveRoute(request.path);
  HttpResponse response;
  if (!route.has_value()) {
    response = KserveError(absl::NotFoundError(absl::StrCat(
        "nothing is served at ", request.path.substr(0, kMaxPathShown))));
  } else if (!route->Serves(request.method)) {
    response = OtherMethod(request.method, route->methods);
  } else if (route->action == KserveAction::kInfer) {
    return Infer(*route, std::move(exchange));
  } else if (route->action == KserveAction::kLoad ||
             route->action == KserveAction::kUnload) {
    return Change(*route, std::move(exchange));
  } else {
    response = Answer(*route, request);
  }
  exchange->Answer(std::move(response), [] {});
}

void KserveRest::Infer(const KserveRoute& route,
                       std::unique_ptr<http::Exchange> exchange) {
  HttpRequest& request = exchange->request();
  const int64_t bytes = request.body.size();
  absl::StatusOr<rpc::CallInfo> call = CallOf(request, base::SteadyNow());
  absl::StatusOr<KserveRequest> asked = Read(route, call.status(), &request);
  if (asked.ok()) {
    return KserveInferCall::Start(asked->outputs.AnyJson() ? json_env_ : env_,
                                  *std::move(call), *std::move(asked),
                                  std::move(exchange));
  }
  RequestRecord record = Record(Method::kModelInfer, bytes, request);
  record.set_client(request.caller.name);
  exchange->Answer(KserveError(record.Finish(asked.status())), [] {});
}

void KserveRest::Change(const KserveRoute& route,
                        std::unique_ptr<http::Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  const bool load = route.action == KserveAction::kLoad;
  // Holds all that the change's end needs: it may come after this is gone, when
  // answering has no effect.
  struct Call {
    Call(const KserveRest& rest, Method method,
         std::unique_ptr<http::Exchange> exchange)
        : exchange(std::move(exchange)),
          record(method, this->exchange->request().body.size(),
                 this->exchange->request().peer,
                 Header(this->exchange->request(), "traceparent"),
                 &rest.env_.metrics, &rest.env_.log) {
      record.set_no_model();
    }

    const std::unique_ptr<http::Exchange> exchange;
    RequestRecord record;
  };
  const admin::Caller caller = {request.peer,
                                std::string(Header(request, "authorization"))};
  const bool from_page = request.headers.count("origin") > 0;
  const std::string body = request.body;
  const auto call = std::make_shared<Call>(
      *this,
      load ? Method::kRepositoryModelLoad : Method::kRepositoryModelUnload,
      std::move(exchange));
  const auto done = [call](const absl::Status& status) {
    const absl::Status counted = call->record.Finish(status);
    call->exchange->Answer(status.ok() ? HttpResponse() : KserveError(counted),
                           [] {});
  };
  // Without tokens, callers on this machine may administer. A web page in a
  // browser here must not do so in its reader's name.
  absl::Status status =
      from_page ? server::OriginRefused() : control_.Check(caller);
  if (status.ok()) status = options_.serving();
  if (!status.ok()) return done(status);
  if (load) {
    const auto asked = ReadLoadBody(route.model, body);
    if (!asked.ok()) return done(asked.status());
    return control_.Load(caller, *asked, done);
  }
  const auto asked = ReadUnloadBody(route.model, body);
  if (!asked.ok()) return done(asked.status());
  control_.Unload(caller, *asked, done);
}

absl::StatusOr<KserveRequest> KserveRest::Read(const KserveRoute& route,
                                               const absl::Status& call,
                                               HttpRequest* request) const {
  const absl::Status serving = options_.serving();
  if (!serving.ok()) return serving;
  if (!call.ok()) return call;
  return ReadKserveRequest(
      route.model, route.version,
      FindHeader(*request, "inference-header-content-length"),
      std::move(request->body), options_.max_message_bytes, &env_.memory);
}

HttpResponse KserveRest::Answer(const KserveRoute& route,
                                const HttpRequest& request) const {
  switch (route.action) {
    case KserveAction::kServerLive:
      return Probe(options_.live());
    case KserveAction::kServerReady:
      return Probe(options_.ready());
    case KserveAction::kServerMetadata: {
      inference::ServerMetadataResponse message;
      kserve::DescribeServer(options_.version, &message);
      return JsonResponse(MessageJson(message));
    }
    case KserveAction::kModelReady:
      return ModelReady(route);
    case KserveAction::kIndex:
      return Index(request);
    case KserveAction::kMemoryStatus:
      return JsonResponse("[]");
    case KserveAction::kMemoryRegister:
      return Refuse(Method::kSharedMemory, request,
                    server::NotSupported("shared memory"));
    case KserveAction::kMemoryUnregister:
      return Probe(true);
    case KserveAction::kSettings:
      return KserveError(server::NotSupported("this protocol's settings"));
    default:
      return AnswerModel(route, request);
  }
}

HttpResponse KserveRest::AnswerModel(const KserveRoute& route,
                                     const HttpRequest& request) const {
  absl::Status status = options_.serving();
  if (route.action == KserveAction::kModelMetadata) {
    const auto asked = Named<inference::ModelMetadataRequest>(route);
    inference::ModelMetadataResponse message;
    RequestRecord record =
        Record(Method::kModelMetadata, request.body.size(), request);
    record.set_client(request.caller.name);
    if (status.ok()) status = queries_.Metadata(asked, &message, &record);
    return Message(record.Finish(status), message);
  }
  if (route.action == KserveAction::kModelConfig) {
    const auto asked = Named<inference::ModelConfigRequest>(route);
    inference::ModelConfigResponse message;
    RequestRecord record =
        Record(Method::kModelConfig, request.body.size(), request);
    record.set_client(request.caller.name);
    if (status.ok()) status = queries_.Config(asked, &message, &record);
    return Message(record.Finish(status), message.config());
  }
  const auto asked = Named<inference::ModelStatisticsRequest>(route);
  inference::ModelStatisticsResponse message;
  RequestRecord record =
      Record(Method::kModelStatistics, request.body.size(), request);
  record.set_client(request.caller.name);
  if (status.ok()) status = queries_.Statistics(asked, &message, &record);
  return Message(record.Finish(status), message);
}

HttpResponse KserveRest::ModelReady(const KserveRoute& route) const {
  const auto asked = Named<inference::ModelReadyRequest>(route);
  inference::ModelReadyResponse message;
  const absl::Status status = queries_.Ready(asked, &message);
  if (!status.ok()) return KserveError(status);
  return Probe(message.ready() && options_.serving().ok());
}

HttpResponse KserveRest::Index(const HttpRequest& request) const {
  RequestRecord record =
      Record(Method::kRepositoryIndex, request.body.size(), request);
  record.set_client(request.caller.name);
  record.set_no_model();
  absl::Status status = options_.serving();
  const absl::StatusOr<bool> only_ready = ReadOnlyReady(request.body);
  if (status.ok()) status = only_ready.status();
  inference::RepositoryIndexRequest asked;
  inference::RepositoryIndexResponse index;
  if (status.ok()) {
    asked.set_ready(*only_ready);
    status = queries_.Index(asked, &index, &record);
  }
  status = record.Finish(status);
  if (!status.ok()) return KserveError(status);
  std::string json = "[";
  for (const auto& model : index.models()) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", MessageJson(model));
  }
  return JsonResponse(json + "]");
}

}  // namespace sfmamba::rest
