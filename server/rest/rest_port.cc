#include "server/rest/rest_port.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "server/http/tls_context.h"
#include "server/rest/access.h"
#include "server/rest/error_response.h"

namespace sfmamba::rest {
namespace {

// Most lines a second about failed handshakes.
constexpr int kHandshakeLines = 5;

// Adds what lets the request's page read the answer.
http::HttpResponse Readable(const std::vector<std::string>& allowed_origins,
                            const http::HttpRequest& request,
                            http::HttpResponse response) {
  for (auto& header : CorsHeaders(allowed_origins, request)) {
    response.headers.push_back(std::move(header));
  }
  return response;
}

http::HttpOptions HttpOptionsOf(
    const prediction::TransportEnvironment& environment,
    const RestPort::Options& options) {
  observability::Metrics& metrics = environment.metrics;
  http::HttpOptions result = options.http;
  result.admit = [gate = environment.gate, origins = options.allowed_origins](
                     http::HttpRequest& request) {
    auto refusal = Admit(gate, request);
    if (refusal) refusal = Readable(origins, request, *std::move(refusal));
    return refusal;
  };
  result.refusal = [origins = options.allowed_origins](
                       const http::HttpRequest& request, int status,
                       const std::string& message) {
    return Readable(origins, request,
                    RefusalResponse(status, message, request.path));
  };
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
