#ifndef SFMAMBA_SERVER_RPC_PORT_TLS_CREDENTIALS_H_
#define SFMAMBA_SERVER_RPC_PORT_TLS_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/security/tls_identity.h"

namespace sfmamba::rpc {

// Credentials of a server that speaks TLS 1.2 and 1.3: each new connection
// begins with the identity as it is then. If the identity has a client_ca,
// clients must show a certificate that it has signed, or may where
// `client_optional` is set. For one server. `identity` is set, and outlives the
// server.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(
    const security::CurrentTlsIdentity& identity, bool client_optional);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_TLS_CREDENTIALS_H_
