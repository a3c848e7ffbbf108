#include "server/rpc/port/grpc_port.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "server/host/listening_sockets.h"
#include "server/rpc/port/connection_limits.h"
#include "server/rpc/port/port_check.h"
#include "server/rpc/port/tls_credentials.h"

namespace sfmamba::rpc {
namespace {

// How long the port may take to answer a new connection.
constexpr absl::Duration kPatience = absl::Seconds(10);

// Limits that protect the server from its clients: docs/serving.md, "Limits".
void SetLimits(const GrpcPort::Options& options, grpc::ServerBuilder* builder) {
  const v1::ServerConfig& config = options.config;
  builder->SetMaxReceiveMessageSize(config.max_message_bytes());
  builder->SetMaxSendMessageSize(config.max_message_bytes());
  SetConnectionLimits(config, builder);
  // The limit of messages is of their bytes on the wire, and a KiB of them may
  // stand for a MiB. Pictures are compressed already.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  grpc::ResourceQuota quota(options.what);
  // Once it is full gRPC ends whatever it finds, of any client: it is there for
  // what options.receives does not see.
  quota.Resize(options.receives == nullptr ? options.transport_bytes
                                           : options.transport_bytes / 4 * 5);
  builder->SetResourceQuota(quota);
}

}  // namespace

GrpcPort::GrpcPort(Options options)
    : options_(std::move(options)),
      call_counts_([this](const std::string& peer) { EndConnection(peer); }) {}

GrpcPort::~GrpcPort() {
  port_check_ = nullptr;
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
  const std::string address = sockets->LocalAddress();
  grpc::ServerBuilder builder;
  SetLimits(options_, &builder);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      options_.tls == nullptr
          ? grpc::InsecureServerCredentials()
          : MakeTlsCredentials(*options_.tls,
                               options_.config.tls_client_optional()));
  std::vector<
      std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
      interceptors;
  interceptors.push_back(std::make_unique<CallInterceptors>(&call_counts_));
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  for (grpc::Service* service : options_.services) {
    builder.RegisterService(service);
  }
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr) {
    return absl::InternalError(
        absl::StrCat(options_.what, ": gRPC does not start"));
  }
  ConnectionAcceptor::Options limits = AcceptorOptions(options_.config);
  limits.refused = options_.refused;
  limits.receives = options_.receives;
  limits.calls = &call_counts_;
  port_ = sockets->port();
  absl::MutexLock lock(&acceptor_mu_);
  acceptor_ = std::make_unique<ConnectionAcceptor>(limits, *std::move(sockets),
                                                   std::move(acceptor));
  CheckItself(address);
  return absl::OkStatus();
}

void GrpcPort::CheckItself(const std::string& address) {
  const absl::Duration period =
      base::FromProto(options_.config.self_check_period());
  if (period == absl::ZeroDuration() || options_.deaf == nullptr) return;
  PortCheck::Options options;
  options.call = [address, has_tls = options_.tls != nullptr] {
    return has_tls ? CallTlsPort(address, kPatience)
                   : CallPort(address, kPatience);
  };
  options.deaf = [this](const absl::Status& status) {
    if (!stopping_.load()) options_.deaf(status);
  };
  port_check_ = std::make_unique<server::Periodic>(
      "port-check", period,
      [check = std::make_shared<PortCheck>(std::move(options))] {
        check->Run();
      });
}

void GrpcPort::StopListening() {
  stopping_.store(true);
  absl::MutexLock lock(&acceptor_mu_);
  acceptor_ = nullptr;
}

void GrpcPort::Shutdown(absl::Duration timeout) {
  StopListening();
  // By the clock that gRPC asks: absl::Now() may not know yet that it was set.
  grpc_->Shutdown(std::chrono::system_clock::now() +
                  absl::ToChronoMicroseconds(timeout));
}

void GrpcPort::EndConnection(const std::string& peer) {
  options_.refused();
  absl::MutexLock lock(&acceptor_mu_);
  if (acceptor_ != nullptr) acceptor_->End(peer);
}

}  // namespace sfmamba::rpc
