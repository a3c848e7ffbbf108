#ifndef SFMAMBA_SERVER_REST_REST_PORT_H_
#define SFMAMBA_SERVER_REST_REST_PORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"
#include "server/prediction/transport_environment.h"
#include "server/rest/rest_service.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rest {

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
    bool tls_client_optional = false;  // See http::TlsContext::Options.
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
