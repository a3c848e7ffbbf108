#include "server/server.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "base/steady_clock.h"
#include "grpc/grpc.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "model/config.h"
#include "server/batching/batch_task.h"
#include "server/batching/executor.h"

namespace sfmamba::server {
namespace {

constexpr char kVisionName[] = "sfmamba.v1.VisionService";
// Answers that may wait for the finish pool; more are refused.
constexpr int kMaxAnswersQueued = 4096;
// The batch queues bound the bytes of what waits in the others too.
constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();
// What a client is told to wait when the decode or the answer queue is full.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
// Addresses; further ones are told of what was told before.
constexpr int kMaxClientsKnown = 4096;
constexpr absl::Duration kLivenessPeriod = absl::Seconds(1);

prediction::RequestLimits LimitsOf(const v1::ServerConfig& config) {
  prediction::RequestLimits limits;
  limits.max_images = config.max_images_per_request();
  limits.image.max_bytes = config.max_image_bytes();
  limits.image.max_pixels = config.max_image_pixels();
  limits.image.max_side = config.max_image_side();
  limits.image.max_decode_time = base::FromProto(config.decode_timeout());
  return limits;
}

FairPool::Options PoolOptions(const char* name,
                              const Server::Options& options) {
  FairPool::Options result;
  result.name = name;
  result.threads = options.config.decode_threads();
  result.clock = options.clock;
  return result;
}

FairPool::Options DecodeOptions(const Server::Options& options) {
  FairPool::Options result = PoolOptions("decode", options);
  result.memory_bytes = options.config.decode_memory_budget_bytes();
  return result;
}

std::string Address(const std::string& host, int port) {
  const bool ipv6 = absl::StrContains(host, ':') && host.front() != '[';
  return ipv6 ? absl::StrCat("[", host, "]:", port)
              : absl::StrCat(host, ":", port);
}

// Limits that protect the server from its clients: docs/serving.md, "Limits".
void SetLimits(const v1::ServerConfig& config, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(config.max_message_bytes());
  builder->SetMaxSendMessageSize(config.max_message_bytes());
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder->AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  // Without this a second server on the port would take half of the calls.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  grpc::ResourceQuota quota("server");
  quota.Resize((size_t{1} << 30) + config.max_message_bytes());
  builder->SetResourceQuota(quota);
}

}  // namespace

Server::Server(const Options& options, observability::Logger* log)
    : config_(options.config),
      clock_(options.clock),
      on_device_failed_(options.device_failed),
      refusal_window_(options.refusal_window),
      scrape_window_(options.scrape_window),
      log_(*log),
      metrics_(options.build),
      decode_room_(config_.decode_queue_items(), kAnyBytes, kRetryAfter,
                   "decode"),
      finish_room_(kMaxAnswersQueued, kAnyBytes, kRetryAfter, "finish"),
      finish_pool_(PoolOptions("finish", options)),
      health_([this] { return IsAlive(); }),
      repository_(
          repository::RepositoryOptions(
              config_,
              [this](const absl::Status& status) { DeviceFailed(status); },
              options.build.revision),
          options.load, &metrics_, log),
      decode_pool_(DecodeOptions(options)),
      without_deadline_(kMaxClientsKnown),
      vision_({repository_, decode_pool_, decode_room_, finish_pool_,
               finish_room_, metrics_, *log, without_deadline_,
               LimitsOf(config_), config_.max_message_bytes(),
               base::FromProto(config_.default_deadline()),
               base::FromProto(config_.max_deadline()), clock_}),
      liveness_("liveness", kLivenessPeriod, [this] { UpdateLiveness(); }) {
  health_.SetServing("", false);
  health_.SetServing(kVisionName, false);
}

Server::~Server() {
  if (grpc_ == nullptr) return;
  health_.EndWatches();
  grpc_->Shutdown(absl::ToChronoTime(absl::Now()));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const Options& options, observability::Logger* log) {
  auto server = absl::WrapUnique(new Server(options, log));
  auto metrics_server = observability::MetricsServer::Start(
      server->config_.host(), server->config_.metrics_port(), server->metrics_);
  if (!metrics_server.ok()) return metrics_server.status();
  server->metrics_server_ = *std::move(metrics_server);
  server->scanned_ = server->repository_.Scan();
  for (const auto& version : server->repository_.List()) {
    server->health_.SetServing(version->health_name(), false);
  }
  const absl::Status status = server->Listen();
  if (!status.ok()) return status;
  log->Info(observability::LogModule::kServer, "listening",
            {{"host", server->config_.host()},
             {"port", server->port()},
             {"metrics_port", server->metrics_port()}});
  return server;
}

absl::Status Server::Listen() {
  grpc::EnableDefaultHealthCheckService(false);
  if (!config_.disable_reflection()) {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  }
  const std::string address = Address(config_.host(), config_.port());
  grpc::ServerBuilder builder;
  SetLimits(config_, &builder);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(&vision_);
  builder.RegisterService(&health_);
  grpc_ = builder.BuildAndStart();
  if (grpc_ != nullptr && port_ != 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "cannot bind the gRPC port: ", address,
      " is in use, not an address of this machine, or not allowed"));
}

absl::Status Server::LoadModels(const std::function<bool()>& stop) {
  if (!scanned_.ok()) return scanned_;
  bool any_ready = false;
  const auto changed = [this,
                        &any_ready](const repository::ModelVersion& version) {
    const bool ready = version.state() == observability::ModelState::kReady;
    any_ready |= ready;
    health_.SetServing(version.health_name(), ready);
  };
  const absl::Status status = repository_.LoadAll(changed, stop);
  if (absl::IsCancelled(status)) return status;
  if (status.ok() || (any_ready && !config_.exit_on_load_error())) {
    health_.SetServing("", true);
    health_.SetServing(kVisionName, true);
    log_.Info(observability::LogModule::kServer, "serving");
  }
  return status;
}

void Server::DeviceFailed(const absl::Status& status) {
  device_failed_.store(true);
  health_.Fail();
  log_.Error(observability::LogModule::kServer, "a device has failed for good",
             {{"error", status.message()}});
  on_device_failed_();
}

bool Server::IsAlive() const {
  for (const auto& version : repository_.List()) {
    const auto model = version->Loaded();
    if (model.ok() && !(*model)->executor->IsAlive(clock_())) return false;
  }
  return true;
}

void Server::UpdateLiveness() {
  for (const auto& version : repository_.List()) {
    const auto model = version->Loaded();
    if (!model.ok()) continue;
    version->metrics()->AliveIs((*model)->executor->IsAlive(clock_()));
  }
  health_.UpdateLiveness();
}

bool Server::Shutdown() {
  log_.Info(observability::LogModule::kServer, "draining");
  health_.SetNoneServing();
  if (!device_failed_.load()) {
    absl::SleepFor(base::FromProto(config_.drain_delay()));
  }
  vision_.StartDraining();
  // gRPC cancels the calls that come after grpc_->Shutdown() from a client that
  // has not read the GOAWAY yet. A client that was refused before, and goes
  // elsewhere, is not among them.
  absl::SleepFor(refusal_window_);
  health_.EndWatches();
  const absl::Duration timeout = base::FromProto(config_.drain_timeout());
  const absl::Time start = base::SteadyNow();
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + timeout));
  const bool clean = base::SteadyNow() - start < timeout;
  if (clean) {
    log_.Info(observability::LogModule::kServer, "drained");
  } else {
    log_.Error(observability::LogModule::kServer,
               "drain_timeout has passed: the calls left were cancelled");
  }
  absl::SleepFor(scrape_window_);
  return clean;
}

}  // namespace sfmamba::server
