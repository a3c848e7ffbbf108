#ifndef SFMAMBA_SERVER_RPC_PORT_GRPC_LOG_H_
#define SFMAMBA_SERVER_RPC_PORT_GRPC_LOG_H_

#include <functional>

#include "absl/strings/string_view.h"

namespace sfmamba::rpc {

// Takes what gRPC would write to stderr. It says nowhere else that a TLS
// handshake has failed.
//
// One of a process at a time: gRPC has one log. Not thread-safe.
class GrpcLog {
 public:
  // Both are called on any of gRPC's threads, and must be quick.
  struct Options {
    // The text of gRPC's error.
    std::function<void(absl::string_view text)> error;
    // A client could not begin a TLS connection, as with an expired
    // certificate; the text says why.
    std::function<void(absl::string_view text)> handshake_failed;
  };

  explicit GrpcLog(Options options);
  // gRPC writes to stderr again.
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_GRPC_LOG_H_
