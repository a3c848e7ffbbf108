#ifndef SFMAMBA_SERVER_REST_REST_PORT_H_
#define SFMAMBA_SERVER_REST_REST_PORT_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/model_changes.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"
#include "server/http/metrics_server.h"
#include "server/prediction/transport_environment.h"
#include "server/rest/kserve/kserve_rest.h"
#include "server/rest/vision_routes.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rest {

// All that is served over HTTP, by path: the typed API under /v1, the Open
// Inference Protocol under /v2, probes, metrics, the console and
// /openapi.json. docs/serving.md, "REST", lists the routes.
//
// Thread-safe. It outlives the exchanges that it was given.
class RestService {
 public:
  // KserveRest's: what else is served asks for the same.
  struct Options : KserveRest::Options {
    bool console = true;  // Whether it is served.
  };

  RestService(prediction::TransportEnvironment environment, Options options);

  // Answers a request, now or later. Does not wait, but works as long as it
  // takes to read the request's body.
  void Handle(std::unique_ptr<http::Exchange> exchange);

  // From now on requests for models are answered UNAVAILABLE with reason
  // DRAINING.
  void StartDraining() { draining_.store(true); }

 private:
  absl::Status CheckServing() const;
  // Returns the answer of a path that is no model's.
  http::HttpResponse Page(const http::HttpRequest& request);

  const Options options_;
  http::MetricsPage metrics_;
  const VisionRoutes vision_;
  KserveRest kserve_;
  const std::string open_api_;
  std::atomic<bool> draining_{false};
};

// The port that everything over HTTP is served at. Thread-safe.
class RestPort {
 public:
  struct Options : RestService::Options {
    // The port's own settings. What is left to RestPort: tls, and the functions
    // that it calls.
    http::HttpOptions http;
    // Connections are TLS with this identity, which is set and outlives the
    // port; null: they are in clear.
    const security::CurrentTlsIdentity* tls = nullptr;
    bool tls_client_optional = false;          // See http::TlsContext::Options.
    std::vector<std::string> allowed_origins;  // See CorsHeaders().
  };

  // UNAVAILABLE, naming host and port, if the port cannot be bound;
  // INVALID_ARGUMENT if the identity is none for TLS.
  static absl::StatusOr<std::unique_ptr<RestPort>> Start(
      prediction::TransportEnvironment environment, const Options& options);

  int port() const { return http_->port(); }

  // See RestService.
  void StartDraining() { service_.StartDraining(); }
  // See http::HttpServer.
  bool Drain(absl::Duration limit) { return http_->Drain(limit); }

 private:
  RestPort(const prediction::TransportEnvironment& environment,
           const Options& options)
      : service_(environment, options) {}

  RestService service_;
  std::unique_ptr<http::HttpServer> http_;  // Last: it uses what is above.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_REST_PORT_H_
