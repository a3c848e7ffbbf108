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

// A port that gRPC services are served at, with the limits that protect the
// server from its clients: docs/serving.md, "Limits".
//
//   auto port = GrpcPort::Start(options);  // Listens.
//   (*port)->StopListening();              // The calls that are open go on.
//   (*port)->Shutdown(timeout);            // They have ended.
//
// Thread-safe, but for Shutdown(), which is called at most once.
class GrpcPort {
 public:
  struct Options {
    std::string what = "the gRPC port";  // In errors and in the log.
    int port = 0;                        // 0: any free one.
    v1::ServerConfig config;             // WithDefaults: the host and limits.
    // Most memory of all messages that are being received or sent.
    int64_t transport_bytes = int64_t{64} << 20;
    // What connections speak TLS with, set, which outlives the port; null: they
    // are plaintext.
    const security::CurrentTlsIdentity* tls = nullptr;
    // They outlive the port. Unary methods are of the callback API.
    std::vector<grpc::Service*> services;
    bool reflection = false;  // gRPC's reflection of the services is served.
    // Called for each connection that is ended because there are too many.
    // Must not block.
    std::function<void()> refused = [] {};
  };

  // UNAVAILABLE, naming host and port, if the port cannot be bound.
  static absl::StatusOr<std::unique_ptr<GrpcPort>> Start(Options options);
  // Cancels the calls that Shutdown() has not waited for.
  ~GrpcPort();

  int port() const { return port_; }

  // Takes no new connections. Those that are open stay.
  void StopListening() ABSL_LOCKS_EXCLUDED(acceptor_mu_);
  // Stops listening, refuses new calls, and waits for the others for `timeout`,
  // when they are cancelled.
  void Shutdown(absl::Duration timeout);

 private:
  explicit GrpcPort(Options options) : options_(std::move(options)) {}

  absl::Status Listen();

  const Options options_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> grpc_;  // Uses everything above.
  absl::Mutex acceptor_mu_;
  std::unique_ptr<ConnectionAcceptor> acceptor_
      ABSL_GUARDED_BY(acceptor_mu_);  // Null while stopping.
};

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

#endif  // SFMAMBA_SERVER_RPC_PORT_GRPC_PORT_H_
