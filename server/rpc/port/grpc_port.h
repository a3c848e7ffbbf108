#ifndef SFMAMBA_SERVER_RPC_PORT_GRPC_PORT_H_
#define SFMAMBA_SERVER_RPC_PORT_GRPC_PORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/impl/codegen/service_type.h"
#include "grpcpp/server.h"
#include "server/rpc/port/connection_acceptor.h"
#include "server/security/tls_identity.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::rpc {

// Serves gRPC services on one port, with limits that protect the server from
// its clients. See docs/serving.md, "Limits".
//
//   auto port = GrpcPort::Start(options);  // Listens.
//   (*port)->StopListening();              // Open calls continue.
//   (*port)->Shutdown(timeout);            // All calls have ended.
//
// Thread-safe, except that Shutdown() may be called at most once.
class GrpcPort {
 public:
  struct Options {
    // The name of the port in errors and in the log.
    std::string what = "the gRPC port";
    // The port number. If it is 0, the system selects a free port.
    int port = 0;
    // The result of WithDefaults(). Contains the host and the limits.
    v1::ServerConfig config;
    // Maximum memory of all messages that are being received or sent.
    int64_t transport_bytes = int64_t{64} << 20;
    // Provides the certificate and key for TLS. Must already contain an
    // identity and must outlive the port. If the pointer is null, connections
    // are not encrypted.
    const security::CurrentTlsIdentity* tls = nullptr;
    // The services must outlive the port. Unary methods must use the callback
    // API.
    std::vector<grpc::Service*> services;
    bool reflection = false;  // True if gRPC's reflection service is enabled.
    // Called for each connection that is closed because there are too many.
    // Must not block.
    std::function<void()> refused = [] {};
  };

  // Starts a port. Returns UNAVAILABLE with host and port if the port cannot be
  // bound.
  static absl::StatusOr<std::unique_ptr<GrpcPort>> Start(Options options);
  // Cancels all remaining calls.
  ~GrpcPort();

  int port() const { return port_; }

  // Refuses new connections. Open connections stay open.
  void StopListening() ABSL_LOCKS_EXCLUDED(acceptor_mu_);
  // Stops listening, refuses new calls and waits for the open calls. Cancels
  // calls that are still open after `timeout`.
  void Shutdown(absl::Duration timeout);

 private:
  explicit GrpcPort(Options options) : options_(std::move(options)) {}

  absl::Status Listen();

  const Options options_;
  int port_ = 0;
  // This member comes after the members that it uses.
  std::unique_ptr<grpc::Server> grpc_;
  absl::Mutex acceptor_mu_;
  std::unique_ptr<ConnectionAcceptor> acceptor_
      ABSL_GUARDED_BY(acceptor_mu_);  // Null after StopListening().
};

// Redirects gRPC's log messages, which gRPC otherwise writes to stderr. gRPC
// reports failed TLS handshakes only in its log.
//
// At most one object may exist in a process, because gRPC has one global log.
// Not thread-safe.
class GrpcLog {
 public:
  // gRPC's threads call `error` and `handshake_failed`. Both functions must be
  // fast and thread-safe.
  struct Options {
    // Receives the text of a gRPC error.
    std::function<void(absl::string_view text)> error;
    // Receives the reason of a failed TLS handshake, such as an expired
    // certificate.
    std::function<void(absl::string_view text)> handshake_failed;
  };

  explicit GrpcLog(Options options);
  // Restores gRPC's default log.
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_GRPC_PORT_H_
