#ifndef SFMAMBA_SERVER_REST_REST_PORT_H_
#define SFMAMBA_SERVER_REST_REST_PORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/admin/model_changes.h"
#include "server/http/http_server.h"
#include "server/prediction/transport_environment.h"
#include "server/rest/kserve/kserve_rest.h"
#include "server/rest/rest_service.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rest {

// The port that everything over HTTP is served at. Thread-safe.
class RestPort {
 public:
  struct Options {
    std::string version;  // The server's.
    // Address and limits; what is called is set here.
    http::HttpOptions http;
    bool console = true;  // Whether it is served.
    // Connections are TLS with this identity, which is set and outlives the
    // port; null: they are in clear.
    const security::CurrentTlsIdentity* tls = nullptr;
    bool tls_client_optional = false;  // See http::TlsContext::Options.
    // See RestService::Options.
    std::function<bool()> live;
    std::function<bool()> ready;
    // See KserveService::Options.
    admin::ModelChanges* changes = nullptr;
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
  RestPort(prediction::TransportEnvironment environment,
           const Options& options);

  KserveRest kserve_;
  RestService service_;
  std::unique_ptr<http::HttpServer> http_;  // Last: it uses what is above.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_REST_PORT_H_
