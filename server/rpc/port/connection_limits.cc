#include "server/rpc/port/connection_limits.h"

#include <algorithm>
#include <limits>

#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "grpc/grpc.h"
#include "server/host/descriptors.h"

namespace sfmamba::rpc {
namespace {

// From a connection's begin until the client has spoken HTTP/2.
constexpr int kHandshakeMilliseconds = 20'000;
// What a connection reads at once: room for it is taken before anything comes.
constexpr int kReadBytes = 256 << 10;
// Descriptors for HTTP connections, the libraries, devices and files.
constexpr int kOtherDescriptors = 384;
// Descriptors among kOtherDescriptors that must stay free whatever happens.
constexpr int kSpareDescriptors = 64;

int Milliseconds(const google::protobuf::Duration& duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(base::FromProto(duration)),
                        std::numeric_limits<int>::max()));
}

// Sets an argument in milliseconds; 0 keeps gRPC's own default, no limit.
void SetUnlessZero(const char* argument,
                   const google::protobuf::Duration& duration,
                   grpc::ServerBuilder* builder) {
  const int milliseconds = Milliseconds(duration);
  if (milliseconds > 0) builder->AddChannelArgument(argument, milliseconds);
}

}  // namespace

void SetConnectionLimits(const v1::ServerConfig& config,
                         grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              config.max_concurrent_streams());
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                              static_cast<int>(config.max_metadata_size()));
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Milliseconds(config.min_recv_ping_interval()));
  SetUnlessZero(GRPC_ARG_KEEPALIVE_TIME_MS, config.keepalive_time(), builder);
  SetUnlessZero(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, config.keepalive_timeout(),
                builder);
  // Connections without calls are looked after too.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  SetUnlessZero(GRPC_ARG_MAX_CONNECTION_AGE_MS, config.max_connection_age(),
                builder);
  SetUnlessZero(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                config.max_connection_age_grace(), builder);
  SetUnlessZero(GRPC_ARG_MAX_CONNECTION_IDLE_MS, config.max_connection_idle(),
                builder);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeMilliseconds);
}

ConnectionAcceptor::Options AcceptorOptions(const v1::ServerConfig& config) {
  ConnectionAcceptor::Options options;
  const int descriptors = server::DescriptorLimit();
  options.max_connections = std::max(
      1, std::min(config.max_connections(), descriptors - kOtherDescriptors));
  options.max_descriptor = descriptors - kSpareDescriptors;
  // Answered calls count a little later than their successors begin.
  options.most_unanswered = 2 * std::min(config.max_concurrent_streams(),
                                         std::numeric_limits<int>::max() / 2);
  options.user_timeout = base::FromProto(config.keepalive_timeout());
  return options;
}

}  // namespace sfmamba::rpc
