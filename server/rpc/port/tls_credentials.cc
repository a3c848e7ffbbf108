#include "server/rpc/port/tls_credentials.h"

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace sfmamba::rpc {
namespace {

using security::TlsIdentity;

// gRPC's own watcher of files takes a key that is not its certificate's, and
// then refuses every connection. So the core's call is used that asks for the
// identity at each connection, for which C++ has no wrapper.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  TlsCredentials(const security::CurrentTlsIdentity& identity,
                 bool client_optional)
      : identity_(identity), client_optional_(client_optional) {}

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    grpc_server_credentials* const credentials =
        grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                ClientCertificates(), &TlsCredentials::Fetch, this));
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  grpc_ssl_client_certificate_request_type ClientCertificates() const {
    if (identity_.Get()->client_ca.empty()) {
      return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    }
    return client_optional_
               ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
               : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->Fetch(config);
  }

  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const std::shared_ptr<const TlsIdentity> now = identity_.Get();
    if (now == fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {now->private_key.c_str(),
                                             now->certificate_chain.c_str()};
    // gRPC insists on roots. Where no certificates are asked for nothing is
    // checked by them.
    const std::string& roots =
        now->client_ca.empty() ? now->certificate_chain : now->client_ca;
    *config =
        grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    fetched_ = now;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const security::CurrentTlsIdentity& identity_;
  const bool client_optional_;
  absl::Mutex mu_;
  // What gRPC uses.
  std::shared_ptr<const TlsIdentity> fetched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(
    const security::CurrentTlsIdentity& identity, bool client_optional) {
  return std::make_shared<TlsCredentials>(identity, client_optional);
}

}  // namespace sfmamba::rpc
