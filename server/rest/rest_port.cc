#include "server/rest/rest_port.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "base/utf8.h"
#include "server/errors/reasons.h"
#include "server/http/tls_context.h"
#include "server/rest/access.h"
#include "server/rest/console/console_page.h"
#include "server/rest/error_response.h"
#include "server/rest/http_call.h"
#include "server/rest/open_api.h"

namespace sfmamba::rest {
namespace {

// Maximum number of log lines per second about failed handshakes.
constexpr int kHandshakeLines = 5;

http::HttpOptions HttpOptionsOf(
    const prediction::TransportEnvironment& environment,
    const RestPort::Options& options, const RestService* service) {
  observability::Metrics& metrics = environment.metrics;
  http::HttpOptions result = options.http;
  result.admit = [gate = environment.gate,
                  service](http::HttpRequest& request) {
    return Admit(gate, service->ScopeOf(request), request);
  };
  result.headers =
      [origins = options.allowed_origins](const http::HttpRequest& request) {
        return CorsHeaders(origins, request);
      };
  result.refusal = [](const http::HttpRequest& request, int status,
                      const std::string& message) {
    return RefusalResponse(status, message, request.path);
  };
  result.refused = [&metrics] { metrics.HttpConnectionRefused(); };
  // The number of log lines is limited because any client can cause failed
  // handshakes.
  result.handshake_failed =
      [&metrics, &log = environment.log,
       lines = observability::LineSampler(kHandshakeLines, /*every=*/0)](
          absl::string_view peer, absl::string_view reason) mutable {
        metrics.TlsHandshakeFailed();
        if (!lines.Admit(base::SteadyNow())) return;
        log.Debug(observability::LogModule::kServer,
                  "a TLS handshake has failed",
                  {{"peer", peer}, {"error", reason}});
      };
  return result;
}

// If a client requests an unknown path, the error message contains only the
// first bytes of the path. The two constants limit the number of these bytes.
// kMaxPathShown is for paths below /v2, and kMaxShown is for all other paths.
constexpr size_t kMaxPathShown = 200;
constexpr size_t kMaxShown = 256;

http::HttpResponse Probe(bool good) {
  http::HttpResponse response;
  response.status = good ? 200 : 503;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"Cache-Control", "no-store"}};
  response.body = {good ? "ok\n" : "not ok\n"};
  return response;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RestPort>> RestPort::Start(
    const call::MethodTable& methods, const Options& options) {
  auto port = absl::WrapUnique(new RestPort(methods, options));
  http::HttpOptions http_options =
      HttpOptionsOf(methods.environment(), options, &port->service_);
  if (options.tls != nullptr) {
    auto tls =
        http::TlsContext::Create({options.tls, options.tls_client_optional});
    if (!tls.ok()) return tls.status();
    http_options.tls = *std::move(tls);
  }
  auto http = http::HttpServer::Start(
      std::move(http_options),
      [service = &port->service_](std::unique_ptr<http::Exchange> exchange) {
        service->Handle(std::move(exchange));
      });
  if (!http.ok()) return http.status();
  port->http_ = *std::move(http);
  return port;
}

RestService::RestService(const call::MethodTable& methods, Options options)
    : methods_(methods),
      paths_(methods.methods()),
      options_(std::move(options)),
      metrics_(&methods.environment().metrics),
      open_api_(OpenApi(paths_, options_.version)) {}

std::optional<security::Scope> RestService::ScopeOf(
    const http::HttpRequest& request) const {
  return rest::ScopeOf(paths_, request);
}

void RestService::Handle(std::unique_ptr<http::Exchange> exchange) {
  const http::HttpRequest& request = exchange->request();
  if (base::Utf8Length(request.path) < 0) {
    return exchange->Answer(RefusalResponse(400, "the path is not UTF-8"));
  }
  const auto found = paths_.Find(request.method, request.path);
  if (found.has_value()) return Serve(*found, std::move(exchange));
  exchange->Answer(Page(request));
}

void RestService::Serve(const MethodPaths::Match& found,
                        std::unique_ptr<http::Exchange> exchange) const {
  const http::HttpRequest& request = exchange->request();
  if (!found.is_served) {
    return exchange->Answer(
        OtherMethod(request.method, found.allowed, request.path));
  }
  // Methods without a metric are probes and other queries that take little
  // time. The server answers these calls even while it drains.
  absl::Status serving = draining_.load() && found.method->metric.has_value()
                             ? server::Draining("the server")
                             : absl::OkStatus();
  server::MemoryBudget* const memory = &methods_.environment().memory;
  auto call = IsUnder(request.path, "/v2")
                  ? MakeKserveCall(std::move(exchange), found.fields,
                                   std::move(serving), options_.kserve, memory)
                  : MakeTypedCall(std::move(exchange), found.fields,
                                  std::move(serving), memory);
  methods_.Serve(*found.method, std::move(call));
}

http::HttpResponse RestService::Page(const http::HttpRequest& request) {
  const std::string& path = request.path;
  if (paths_.Covers(path)) {
    return RefusalResponse(
        404, absl::StrCat("got another verb after the model's name, expected ",
                          paths_.Verbs()));
  }
  if (IsUnder(path, "/v2")) {
    return KserveError(absl::NotFoundError(
        absl::StrCat("nothing is served at ", path.substr(0, kMaxPathShown))));
  }
  if ((path == "/" || IsUnder(path, "/console")) && options_.console) {
    return ConsolePage(request);
  }
  const bool is_live = path == "/healthz" || path == "/livez";
  if (!is_live && path != "/readyz" && path != "/metrics" &&
      path != "/openapi.json") {
    return RefusalResponse(
        404, absl::StrCat("there is no path ",
                          absl::CHexEscape(
                              absl::string_view(path).substr(0, kMaxShown))));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return OtherMethod(request.method, "GET, HEAD, OPTIONS");
  }
  if (path == "/metrics") return metrics_.Answer(request);
  if (path != "/openapi.json") {
    return Probe(is_live ? options_.live() : options_.ready());
  }
  http::HttpResponse response;
  response.headers = {{"Content-Type", "application/json"}};
  response.body = {open_api_};
  return response;
}

}  // namespace sfmamba::rest
