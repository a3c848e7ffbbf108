#ifndef SFMAMBA_SERVER_REST_REST_PORT_H_
#define SFMAMBA_SERVER_REST_REST_PORT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/call/method_table.h"
#include "server/http/exchange.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"
#include "server/http/metrics_server.h"
#include "server/rest/kserve/kserve_call.h"
#include "server/rest/method_paths.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rest {

// All that is served over HTTP, by path: a table's methods, probes, metrics,
// the console and /openapi.json. docs/serving.md, "REST", lists the paths.
//
// Thread-safe. It outlives the exchanges that it is given.
class RestService {
 public:
  struct Options {
    std::string version;  // The server's.
    // Whether every model makes progress, and whether the server is SERVING.
    // Both are quick and thread-safe.
    std::function<bool()> live = [] { return true; };
    std::function<bool()> ready = [] { return true; };
    bool console = true;  // Whether it is served.
    KserveLimits kserve;
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
  // Answers a request that means a method.
  void Serve(const MethodPaths::Match& found,
             std::unique_ptr<http::Exchange> exchange) const;
  // Returns the answer of a path that no method has.
  http::HttpResponse Page(const http::HttpRequest& request);

  const call::MethodTable& methods_;
  const MethodPaths paths_;
  const Options options_;
  http::MetricsPage metrics_;
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
