#ifndef SFMAMBA_SERVER_RPC_PORT_CONNECTION_LIMITS_H_
#define SFMAMBA_SERVER_RPC_PORT_CONNECTION_LIMITS_H_

#include "grpcpp/server_builder.h"
#include "server/rpc/port/connection_acceptor.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::rpc {

// What a connection may do, and how long it may last: docs/serving.md,
// "Limits". `config` is WithDefaults.
void SetConnectionLimits(const v1::ServerConfig& config,
                         grpc::ServerBuilder* builder);

// How many connections there may be: max_connections of `config`, or as many as
// the process may have descriptors for beside what else it opens.
ConnectionAcceptor::Options AcceptorOptions(const v1::ServerConfig& config);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CONNECTION_LIMITS_H_
