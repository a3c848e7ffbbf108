// The functions of Server that create options and environments for the parts of
// the server.

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "server/api/admin/admin_methods.h"
#include "server/api/kserve/kserve_methods.h"
#include "server/api/vision/vision_methods.h"
#include "server/server.h"
#include "server/tracing/collector.h"

namespace sfmamba::server {
namespace {

using observability::LogModule;

prediction::RequestLimits LimitsOf(const v1::ServerConfig& config) {
  prediction::RequestLimits limits;
  limits.max_images = config.max_images_per_request();
  limits.image.max_bytes = config.max_image_bytes();
  limits.image.max_pixels = config.max_image_pixels();
  limits.image.max_side = config.max_image_side();
  limits.image.max_decode_time = base::FromProto(config.decode_timeout());
  limits.exact_decode = config.exact_decode();
  limits.max_decode_bytes = config.decode_memory_budget_bytes();
  return limits;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

std::unique_ptr<tracing::Tracer> Server::MakeTracer() {
  std::unique_ptr<tracing::Collector> collector;
  if (!config_.trace_endpoint().empty()) {
    tracing::Collector::Options options;
    options.endpoint = config_.trace_endpoint();
    options.ca_file = config_.trace_ca_file();
    options.version = options_.build.version;
    options.host = HostName();
    options.changed = [this](const absl::Status& status) {
      if (status.ok()) {
        log_.Info(LogModule::kServer, "spans are taken again");
      } else {
        log_.Warning(LogModule::kServer, "spans are dropped",
                     {{"error", status.message()}});
      }
    };
    collector = std::make_unique<tracing::Collector>(std::move(options));
  }
  return std::make_unique<tracing::Tracer>(config_.trace_ratio(),
                                           std::move(collector));
}

security::Security::Events Server::SecurityEvents() {
  security::Security::Events events;
  events.refused = [this](absl::string_view reason) {
    metrics_.CallRefused(reason);
  };
  events.malformed_forward = [this] { metrics_.ForwardMalformed(); };
  events.reloaded = [this](absl::string_view what, const absl::Status& status) {
    metrics_.FilesReloaded(what, status.ok());
    if (status.ok()) {
      log_.Info(LogModule::kServer, "changed files are used",
                {{"files", what}});
    } else {
      log_.Error(LogModule::kServer,
                 "changed files cannot be used: the previous ones stay in use",
                 {{"files", what}, {"error", status.message()}});
    }
  };
  events.certificate_expires = [this](absl::Time time) {
    metrics_.CertificateExpires(time);
    if (time > absl::Now()) return;
    log_.Error(LogModule::kServer,
               "the certificate has expired: clients refuse it",
               {{"setting", "tls_cert_file"},
                {"expired", absl::FormatTime(time, absl::UTCTimeZone())}});
  };
  return events;
}

rpc::GrpcLog::Options Server::GrpcLogOptions() {
  rpc::GrpcLog::Options options;
  // gRPC errors and failed handshakes are logged at debug level, because any
  // client can cause many of them.
  options.error = [this](absl::string_view text) {
    log_.Debug(LogModule::kServer, "gRPC has met an error", {{"error", text}});
  };
  options.handshake_failed = [this](absl::string_view text) {
    metrics_.TlsHandshakeFailed();
    log_.Debug(LogModule::kServer, "a TLS handshake has failed",
               {{"error", text}});
  };
  return options;
}

prediction::TransportEnvironment Server::Environment() {
  prediction::TransportEnvironment environment = {
      {repository_, decode_pool_, decode_room_, finish_pool_, finish_room_,
       memory_, costs_, metrics_, log_, without_deadline_, LimitsOf(config_),
       config_.max_message_bytes(), base::FromProto(config_.default_deadline()),
       base::FromProto(config_.max_deadline()), options_.clock, tracer_.get(),
       &security_.quotas()},
      &security_.gate(),
      config_.publish_encoded_models()};
  if (config_.load_reports()) {
    environment.load_report = [this](const absl::Status& status) {
      return load_reports_.CallEnded(status);
    };
  }
  return environment;
}

std::vector<call::Method> Server::Methods() {
  kserve::KserveOptions options;
  options.version = options_.build.version;
  options.live = [this] { return IsAlive(); };
  options.ready = [this] { return health_.IsServing(""); };
  options.draining = [this] { return draining_.load(); };
  if (absl::StrContains(config_.model_control(), "explicit")) {
    options.changes = &changes_;
  }
  std::vector<call::Method> methods = api::VisionMethods();
  for (auto& more : {kserve::KserveMethods(options),
                     api::AdminMethods(Build(), &changes_, &settings_)}) {
    methods.insert(methods.end(), more.begin(), more.end());
  }
  return methods;
}

rest::RestPort::Options Server::RestOptions() {
  rest::RestPort::Options options;
  options.version = options_.build.version;
  options.console = !config_.disable_console();
  options.allowed_origins = {config_.allowed_origins().begin(),
                             config_.allowed_origins().end()};
  options.tls = security_.tls();
  options.tls_client_optional = config_.tls_client_optional();
  options.live = [this] { return IsAlive(); };
  options.ready = [this] { return health_.IsServing(""); };
  options.kserve.max_raw_bytes = config_.max_message_bytes();
  options.http.host = config_.host();
  options.http.port = config_.http_port();
  options.http.max_connections = config_.max_http_connections();
  options.http.max_body_bytes = config_.max_message_bytes();
  // Limits the total size of all HTTP bodies in memory. The limit for the gRPC
  // messages of requests in progress has the same size.
  options.http.max_held_bytes = memory_.most_of_message();
  options.http.client_share = config_.client_share();
  options.http.answer_time = base::FromProto(config_.send_timeout());
  return options;
}

rpc::GrpcPort::Options Server::PortOptions(
    int port, std::vector<grpc::Service*> services) {
  rpc::GrpcPort::Options options;
  options.port = port;
  options.config = config_;
  options.services = std::move(services);
  options.refused = [this] { metrics_.GrpcConnectionRefused(); };
  return options;
}

rpc::GrpcPort::Options Server::HealthPortOptions() {
  rpc::GrpcPort::Options options =
      PortOptions(config_.health_port(), {&health_});
  options.what = "the health port";
  return options;
}

rpc::GrpcPort::Options Server::GrpcOptions() {
  rpc::GrpcPort::Options options =
      PortOptions(config_.port(), {&vision_, &kserve_, &health_});
  if (config_.admin_port() < 0) options.services.push_back(&admin_);
  // Reflection is off if there is a token file, because gRPC's reflection
  // service cannot check tokens.
  options.reflection =
      !config_.disable_reflection() && config_.token_file().empty();
  options.transport_bytes = memory_.transport_bytes();
  options.tls = security_.tls();
  return options;
}

rpc::GrpcPort::Options Server::AdminPortOptions() {
  rpc::GrpcPort::Options options = PortOptions(config_.admin_port(), {&admin_});
  options.what = "the port of administration";
  options.tls = security_.tls();
  return options;
}

v1::ServerInfo Server::Build() const {
  v1::ServerInfo build;
  build.set_version(options_.build.version);
  build.set_revision(options_.build.revision);
  build.mutable_start_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  build.set_model_control(config_.model_control());
  return build;
}

}  // namespace sfmamba::server
