#include "server/rpc/port/grpc_port.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/proto_duration.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/host/descriptors.h"
#include "server/host/listening_sockets.h"

namespace sfmamba::rpc {
namespace {

// The time limit for the handshake of a connection.
constexpr int kHandshakeMilliseconds = 20'000;
// The maximum number of bytes that gRPC reads from a connection at once. gRPC
// allocates this memory before any data arrives.
constexpr int kReadBytes = 256 << 10;
// The maximum number of threads for gRPC's reflection service. Each reflection
// stream uses one thread. gRPC refuses additional streams with
// RESOURCE_EXHAUSTED.
constexpr int kMostReflectionThreads = 16;
// The number of descriptors that the process needs for anything other than gRPC
// connections, such as HTTP connections, libraries, devices and files.
constexpr int kOtherDescriptors = 384;
// The number of descriptors that gRPC connections must not use. These are the
// descriptors with the highest possible numbers. They are included in
// kOtherDescriptors. See ConnectionAcceptor::Options::max_descriptor.
constexpr int kSpareDescriptors = 64;

int Milliseconds(const google::protobuf::Duration& duration) {
  return static_cast<int>(
      std::min<int64_t>(absl::ToInt64Milliseconds(base::FromProto(duration)),
                        std::numeric_limits<int>::max()));
}

// Sets a channel argument in milliseconds. If `duration` is 0, keeps gRPC's
// default, which is no limit.
void SetUnlessZero(const char* argument,
                   const google::protobuf::Duration& duration,
                   grpc::ServerBuilder* builder) {
  const int milliseconds = Milliseconds(duration);
  if (milliseconds > 0) builder->AddChannelArgument(argument, milliseconds);
}

// Sets the limits of each connection, including its maximum lifetime.
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
  // Also sends keepalive pings on connections without calls.
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

// Limits the number of connections to max_connections. The limit is lower if
// the process's limit of open descriptors (RLIMIT_NOFILE) is too low for
// max_connections.
ConnectionAcceptor::Options AcceptorOptions(const v1::ServerConfig& config) {
  ConnectionAcceptor::Options options;
  const int descriptors = server::DescriptorLimit();
  options.max_connections = std::max(
      1, std::min(config.max_connections(), descriptors - kOtherDescriptors));
  options.max_descriptor = descriptors - kSpareDescriptors;
  options.user_timeout = base::FromProto(config.keepalive_timeout());
  return options;
}

// Sets the limits that protect the server from its clients. See
// docs/serving.md, "Limits".
void SetLimits(const GrpcPort::Options& options, grpc::ServerBuilder* builder) {
  const v1::ServerConfig& config = options.config;
  builder->SetMaxReceiveMessageSize(config.max_message_bytes());
  builder->SetMaxSendMessageSize(config.max_message_bytes());
  SetConnectionLimits(config, builder);
  // Compression is disabled because the message limit applies to compressed
  // bytes. A compressed KiB may expand to a MiB. Most pictures are already
  // compressed anyway.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  grpc::ResourceQuota quota(options.what);
  // Sets the quota for the memory of gRPC. It is 25 % more than
  // `transport_bytes`, because gRPC also needs memory for connections and
  // calls. If the quota is exhausted, gRPC ends arbitrary calls and
  // connections.
  quota.Resize(options.transport_bytes / 4 * 5);
  quota.SetMaxThreads(kMostReflectionThreads);
  builder->SetResourceQuota(quota);
}

// Disables reflection for one server. Without this option, gRPC's reflection
// library adds the reflection service to every server of the process.
class WithoutReflection final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments*) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>*
                         plugins) override {
    using Plugin = grpc::reflection::ProtoServerReflectionPlugin;
    plugins->erase(
        std::remove_if(plugins->begin(), plugins->end(),
                       [](const auto& plugin) {
                         return dynamic_cast<Plugin*>(plugin.get()) != nullptr;
                       }),
        plugins->end());
  }
};

// Holds the server credentials for TLS 1.2 and 1.3. Each new connection uses
// the identity (certificate and key) that is current when the connection
// starts. If the identity has a client_ca, clients must present a certificate
// signed by that CA. If `client_optional` is set, clients may omit the
// certificate. Each object serves one server.
//
// gRPC's own file watcher may load a key that does not match its certificate.
// gRPC then refuses every connection. This class therefore registers its
// function Fetch() with gRPC core. gRPC core calls Fetch() for each new
// connection to get the current identity. The registration uses the C API,
// because gRPC has no C++ wrapper for it.
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
    const std::shared_ptr<const security::TlsIdentity> now = identity_.Get();
    if (now == fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {now->private_key.c_str(),
                                             now->certificate_chain.c_str()};
    // gRPC requires root certificates. If the server does not ask clients for
    // certificates, these roots are never used.
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
  // The identity that gRPC has fetched most recently.
  std::shared_ptr<const security::TlsIdentity> fetched_ ABSL_GUARDED_BY(mu_);
};

// gRPC's log hook is a function without a context pointer. The current options
// are therefore global.
ABSL_CONST_INIT absl::Mutex current_mu(absl::kConstInit);
const GrpcLog::Options* current ABSL_GUARDED_BY(current_mu) = nullptr;

void Log(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  const absl::string_view text = args->message;
  if (absl::StartsWith(text, "assertion failed")) {
    // gRPC aborts the process after a failed assertion. The text is printed
    // here, because the process may end before the server's log is written.
    std::fprintf(stderr, "gRPC: %s\n", args->message);
  }
  absl::ReaderMutexLock lock(&current_mu);
  if (current == nullptr) return;
  if (absl::StartsWith(text, "Handshake failed")) {
    current->handshake_failed(text);
  } else {
    current->error(text);
  }
}

}  // namespace

GrpcPort::~GrpcPort() {
  if (grpc_ != nullptr) Shutdown(absl::ZeroDuration());
}

absl::StatusOr<std::unique_ptr<GrpcPort>> GrpcPort::Start(Options options) {
  auto port = absl::WrapUnique(new GrpcPort(std::move(options)));
  const absl::Status status = port->Listen();
  if (!status.ok()) return status;
  return port;
}

absl::Status GrpcPort::Listen() {
  grpc::EnableDefaultHealthCheckService(false);
  absl::StatusOr<server::ListeningSockets> sockets =
      server::ListeningSockets::Bind(options_.what, options_.config.host(),
                                     options_.port);
  if (!sockets.ok()) return sockets.status();
  grpc::ServerBuilder builder;
  SetLimits(options_, &builder);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      options_.tls == nullptr
          ? grpc::InsecureServerCredentials()
          : std::make_shared<TlsCredentials>(
                *options_.tls, options_.config.tls_client_optional()));
  for (grpc::Service* service : options_.services) {
    builder.RegisterService(service);
  }
  if (!options_.reflection) {
    builder.SetOption(std::make_unique<WithoutReflection>());
  }
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    return absl::InternalError(
        absl::StrCat(options_.what, ": gRPC does not start"));
  }
  ConnectionAcceptor::Options limits = AcceptorOptions(options_.config);
  limits.refused = options_.refused;
  port_ = sockets->port();
  absl::MutexLock lock(&acceptor_mu_);
  acceptor_ = std::make_unique<ConnectionAcceptor>(limits, *std::move(sockets),
                                                   std::move(acceptor));
  return absl::OkStatus();
}

void GrpcPort::StopListening() {
  absl::MutexLock lock(&acceptor_mu_);
  acceptor_ = nullptr;
}

void GrpcPort::Shutdown(absl::Duration timeout) {
  StopListening();
  // gRPC expects a time of the system clock. absl::Now() is not used, because
  // it may still be wrong after a change of the system clock.
  grpc_->Shutdown(std::chrono::system_clock::now() +
                  absl::ToChronoMicroseconds(timeout));
}

GrpcLog::GrpcLog(Options options) {
  {
    absl::MutexLock lock(&current_mu);
    delete current;
    current = new Options(std::move(options));
  }
  gpr_set_log_function(Log);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  absl::MutexLock lock(&current_mu);
  delete current;
  current = nullptr;
}

}  // namespace sfmamba::rpc
