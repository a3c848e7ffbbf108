#include "server/rest/rest_port.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "server/http/metrics_server.h"
#include "server/http/tls_context.h"
#include "server/rest/access.h"
#include "server/rest/console/console_page.h"
#include "server/rest/error_response.h"

namespace sfmamba::rest {
namespace {

// Most lines a second about failed handshakes.
constexpr int kHandshakeLines = 5;

KserveRest::Options KserveOptions(const RestService& service,
                                  const RestPort::Options& options) {
  KserveRest::Options result;
  result.version = options.version;
  result.live = options.live;
  result.ready = options.ready;
  result.serving = [&service] { return service.CheckServing(); };
  result.max_message_bytes = options.http.max_body_bytes;
  result.changes = options.changes;
  return result;
}

RestService::Options ServiceOptions(observability::Metrics& metrics,
                                    KserveRest* kserve,
                                    const RestPort::Options& options) {
  RestService::Options result;
  result.live = options.live;
  result.ready = options.ready;
  if (options.console) result.console = HandleConsole;
  result.metrics = [&metrics](const http::HttpRequest& request) {
    return http::MetricsResponse(request, metrics);
  };
  result.kserve = [kserve](std::unique_ptr<http::Exchange> exchange) {
    kserve->Handle(std::move(exchange));
  };
  return result;
}

http::HttpOptions HttpOptionsOf(
    const prediction::TransportEnvironment& environment,
    const RestPort::Options& options) {
  observability::Metrics& metrics = environment.metrics;
  http::HttpOptions result = options.http;
  result.admit = [gate = environment.gate](http::HttpRequest& request) {
    return Admit(gate, request);
  };
  result.refusal = RefusalResponse;
  result.refused = [&metrics] { metrics.HttpConnectionRefused(); };
  // Lines are limited: anyone who can connect can make handshakes fail.
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

}  // namespace

RestPort::RestPort(prediction::TransportEnvironment environment,
                   const Options& options)
    : kserve_(environment, KserveOptions(service_, options)),
      service_(environment,
               ServiceOptions(environment.metrics, &kserve_, options)) {}

absl::StatusOr<std::unique_ptr<RestPort>> RestPort::Start(
    prediction::TransportEnvironment environment, const Options& options) {
  auto port = absl::WrapUnique(new RestPort(environment, options));
  http::HttpOptions http_options = HttpOptionsOf(environment, options);
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

}  // namespace sfmamba::rest
