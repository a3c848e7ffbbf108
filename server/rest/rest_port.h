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

// Serves the methods of a MethodTable, probes, metrics, the console and
// /openapi.json over HTTP. See docs/serving.md, "REST", for the paths.
//
// Thread-safe. Must outlive all exchanges passed to Handle().
class RestService {
 public:
  struct Options {
    std::string version;  // The server's version.
    // `live` returns false if a model hangs, for example because a batch takes
    // too long. `ready` returns true if the server is SERVING. Both functions
    // must be fast and thread-safe.
    std::function<bool()> live = [] { return true; };
    std::function<bool()> ready = [] { return true; };
    bool console = true;  // True if the console is served.
    KserveLimits kserve;
  };

  // `methods` must outlive the service.
  RestService(const call::MethodTable& methods, Options options);

  // Returns the scope that the caller of a request needs. See ScopeOf() in
  // access.h.
  std::optional<security::Scope> ScopeOf(
      const http::HttpRequest& request) const;

  // Answers a request, either before this function returns or later. Does not
  // block, but parses the request's body on the calling thread.
  void Handle(std::unique_ptr<http::Exchange> exchange);

  // Starts draining. From now on, each new call of a method that has a metric
  // (call::Method::metric) fails with UNAVAILABLE and reason DRAINING. All
  // other requests, such as probes, are still answered.
  void StartDraining() { draining_.store(true); }

 private:
  // Passes a request to its method.
  void Serve(const MethodPaths::Match& found,
             std::unique_ptr<http::Exchange> exchange) const;
  // Returns the response for a path that does not belong to a method.
  http::HttpResponse Page(const http::HttpRequest& request);

  const call::MethodTable& methods_;
  const MethodPaths paths_;
  const Options options_;
  http::MetricsPage metrics_;
  const std::string open_api_;
  std::atomic<bool> draining_{false};
};

// Serves a RestService on a port. Thread-safe.
class RestPort {
 public:
  struct Options : RestService::Options {
    // The settings of the HTTP server. RestPort sets `tls` and the callbacks
    // itself.
    http::HttpOptions http;
    // Provides the certificate and key for TLS. Must already contain an
    // identity and must outlive the port. If the pointer is null, connections
    // are not encrypted.
    const security::CurrentTlsIdentity* tls = nullptr;
    bool tls_client_optional = false;          // See http::TlsContext::Options.
    std::vector<std::string> allowed_origins;  // See CorsHeaders().
  };

  // Starts a port. Returns UNAVAILABLE with host and port if the port cannot be
  // bound. Returns INVALID_ARGUMENT if the certificate or key is not usable for
  // TLS. `methods` must outlive the port.
  static absl::StatusOr<std::unique_ptr<RestPort>> Start(
      const call::MethodTable& methods, const Options& options);

  int port() const { return http_->port(); }

  // See RestService::StartDraining().
  void StartDraining() { service_.StartDraining(); }
  // See http::HttpServer::Drain().
  bool Drain(absl::Duration limit) { return http_->Drain(limit); }

 private:
  RestPort(const call::MethodTable& methods, const Options& options)
      : service_(methods, options) {}

  RestService service_;
  // This member comes last because it uses the members above.
  std::unique_ptr<http::HttpServer> http_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_REST_PORT_H_
