#ifndef SFMAMBA_SERVER_REST_REST_PORT_H_
#define SFMAMBA_SERVER_REST_REST_PORT_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/model_changes.h"
#include "server/call/method_table.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"
#include "server/http/metrics_server.h"
#include "server/rest/kserve/kserve_rest.h"
#include "server/rest/method_paths.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rest {

// All that is served over HTTP, by path: a table's methods, the Open Inference
// Protocol under /v2, probes, metrics, the console and
// /openapi.json. docs/serving.md, "REST", lists the routes.
//
// Thread-safe. It outlives the exchanges that it was given.
class RestService {
 public:
  // KserveRest's: what else is served asks for the same.
  struct Options : KserveRest::Options {
    bool console = true;  // Whether it is served.
  };

  // `methods` outlives the service.
  RestService(const call::MethodTable& methods, Options options);

  // See ScopeOf() of access.h.
  std::optional<security::Scope> ScopeOf(
      const http::HttpRequest& request) const;

  // Answers a request, now or later. Does not wait, but works as long as it
  // takes to read the request's body.
  void Handle(std::unique_ptr<http::Exchange> exchange);

  // From now on requests for models are answered UNAVAILABLE with reason
  // DRAINING.
  void StartDraining() { draining_.store(true); }

 private:
  absl::Status CheckServing() const;
  // Answers a request at a path that methods_ covers.
  void Serve(std::unique_ptr<http::Exchange> exchange) const;
  // Returns the answer of a path that is no model's.
  http::HttpResponse Page(const http::HttpRequest& request);

  const call::MethodTable& methods_;
  const MethodPaths paths_;
  const Options options_;
  http::MetricsPage metrics_;
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
  // INVALID_ARGUMENT if the identity is none for TLS. `methods` outlives the
  // port.
  static absl::StatusOr<std::unique_ptr<RestPort>> Start(
      const call::MethodTable& methods, const Options& options);

  int port() const { return http_->port(); }

  // See RestService.
  void StartDraining() { service_.StartDraining(); }
  // See http::HttpServer.
  bool Drain(absl::Duration limit) { return http_->Drain(limit); }

 private:
  RestPort(const call::MethodTable& methods, const Options& options)
      : service_(methods, options) {}

  RestService service_;
  std::unique_ptr<http::HttpServer> http_;  // Last: it uses what is above.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_REST_PORT_H_
