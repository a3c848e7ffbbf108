#include "server/server.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/proto_duration.h"
#include "base/steady_clock.h"
#include "server/batching/executor.h"
#include "server/host/listening_sockets.h"

namespace sfmamba::server {
namespace {

constexpr char kVisionService[] = "sfmamba.v1.VisionService";
constexpr char kKserveService[] = "inference.GRPCInferenceService";
constexpr char kAdminService[] = "sfmamba.v1.AdminService";
// The services whose health is SERVING when the models are ready. "" means the
// whole server.
constexpr const char* kServiceNames[] = {"", kVisionService, kKserveService};
// The maximum number of answers that wait to be encoded by the finish pool.
// Further answers are refused.
constexpr int kMaxAnswersQueued = 4096;
// Used as the limit of bytes of a QueueRoom. The QueueRoom then limits only the
// number of images. A limit of bytes is not needed there, because the memory
// budget (memory_) already limits the bytes of all images and answers.
constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();
// The maximum number of clients in a ClientSet. The set prevents repeated log
// lines for the same client. If the set is full, it is cleared. A client may
// then be logged again.
constexpr int kMaxClientsKnown = 4096;
// If decoding a picture is expected to take longer than this, the decode pool
// treats the decoding as a long piece of work. See FairPool::Options.
constexpr absl::Duration kLongDecode = absl::Milliseconds(50);
constexpr absl::Duration kHousekeepingPeriod = absl::Seconds(1);
// The time limit for sending the last spans (records for tracing) at the end of
// a shutdown. Metrics can still be scraped during this time.
constexpr absl::Duration kLastSpans = absl::Seconds(1);

FairPool::Options PoolOptions(const char* name,
                              const Server::Options& options) {
  FairPool::Options result;
  result.name = name;
  result.threads = options.config.decode_threads();
  result.clock = options.clock;
  return result;
}

// Returns the options of the finish pool, which encodes answers. A large answer
// is encoded in pieces of a few milliseconds. The pool runs the pieces in
// rounds, see FairQueue. If several pieces of a large answer were in one round,
// a small answer might have to wait for all of them. The rounds of this pool
// are therefore short, so that one round usually contains at most one of the
// pieces. A small answer then usually waits for at most one such piece.
FairPool::Options FinishOptions(const Server::Options& options) {
  FairPool::Options result = PoolOptions("finish", options);
  result.round = absl::Milliseconds(1);
  return result;
}

FairPool::Options DecodeOptions(const Server::Options& options) {
  FairPool::Options result = PoolOptions("decode", options);
  result.memory_bytes = options.config.decode_memory_budget_bytes();
  result.long_piece = kLongDecode;
  return result;
}

v1::RuntimeSettings SettingsOf(const v1::ServerConfig& config) {
  v1::RuntimeSettings settings;
  settings.set_log_level(config.log_level());
  settings.set_trace_ratio(config.trace_ratio());
  return settings;
}

// Moves the value of `started` to `kept`. If `started` is an error, returns the
// error and leaves `kept` unchanged.
template <typename Part>
absl::Status Keep(absl::StatusOr<Part> started, Part* kept) {
  if (started.ok()) *kept = *std::move(started);
  return started.status();
}

}  // namespace

Server::Server(const Options& options, observability::Logger* log)
    : options_(options),
      log_(*log),
      memory_(config_.memory_budget_bytes(),
              config_.decode_memory_budget_bytes()),
      metrics_(options.build),
      grpc_log_(GrpcLogOptions()),
      tracer_(MakeTracer()),
      security_(config_, SecurityEvents()),
      decode_room_({config_.decode_queue_items(), kAnyBytes}, "decode",
                   config_.client_share()),
      finish_room_({kMaxAnswersQueued, kAnyBytes}, "finish"),
      finish_pool_(FinishOptions(options)),
      health_([this] { return IsAlive(); }, config_.max_health_watches(),
              &security_.gate()),
      repository_(
          repository::RepositoryOptions(
              config_,
              [this](const absl::Status& status) { DeviceFailed(status); },
              options.background_starts),
          options.load, &metrics_, log),
      decode_pool_(DecodeOptions(options)),
      without_deadline_(kMaxClientsKnown),
      load_reports_([this] { return Backlog(); }, options.clock),
      settings_(SettingsOf(config_), &repository_, log,
                [this](double ratio) { tracer_->set_ratio(ratio); }),
      changes_(&repository_, log),
      methods_(Environment(), Methods()),
      vision_(methods_, kVisionService,
              base::FromProto(config_.send_timeout())),
      kserve_(methods_, kKserveService,
              base::FromProto(config_.send_timeout())),
      admin_(methods_, kAdminService, base::FromProto(config_.send_timeout())),
      heap_trim_(&memory_),
      housekeeping_("housekeeping", kHousekeepingPeriod, [this] {
        UpdateLiveness();
        heap_trim_.Look();
        options_.release_memory();
        vision_.EndUnreadCalls();
        kserve_.EndUnreadCalls();
        admin_.EndUnreadCalls();
      }) {
  metrics_.ShowMemory(memory_);
  for (const char* name : kServiceNames) health_.SetServing(name, false);
}

Server::~Server() {
  if (grpc_ != nullptr) grpc_->StopListening();
  health_.EndWatches();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const Options& options, observability::Logger* log) {
  auto server = absl::WrapUnique(new Server(options, log));
  const absl::Status status = server->Open();
  if (!status.ok()) return status;
  return server;
}

// Checks that the ports for requests are free. Called before the models are
// loaded, because the server binds these ports only afterwards.
absl::Status Server::CheckPorts() const {
  const std::pair<const char*, int> ports[] = {
      {"the HTTP port", config_.http_port()},
      {"the gRPC port", config_.port()}};
  for (const auto& [what, port] : ports) {
    if (port <= 0) continue;
    const absl::Status status =
        ListeningSockets::Bind(what, config_.host(), port).status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Server::Open() {
  absl::Status status =
      Keep(http::StartMetricsServer(config_.host(), config_.metrics_port(),
                                    &metrics_),
           &metrics_server_);
  if (status.ok()) status = security_.Open();
  if (status.ok()) status = CheckPorts();
  if (!status.ok()) return status;
  scanned_ = repository_.Scan();
  for (const auto& version : repository_.List()) {
    health_.SetServing(version->health_name(), false);
  }
  if (config_.health_port() >= 0) {
    status = Keep(rpc::GrpcPort::Start(HealthPortOptions()), &health_grpc_);
  }
  if (status.ok() && config_.admin_port() >= 0) {
    status = Keep(rpc::GrpcPort::Start(AdminPortOptions()), &admin_grpc_);
  }
  return status;
}

absl::Status Server::OpenRequestPorts() {
  if (grpc_ != nullptr) return absl::OkStatus();
  absl::Status status;
  if (config_.http_port() >= 0) {
    status = Keep(rest::RestPort::Start(methods_, RestOptions()), &rest_);
  }
  if (status.ok()) status = Keep(rpc::GrpcPort::Start(GrpcOptions()), &grpc_);
  if (!status.ok()) return status;
  log_.Info(observability::LogModule::kServer, "listening",
            {{"host", config_.host()},
             {"port", port()},
             {"http_port", http_port()},
             {"health_port", health_port()},
             {"admin_port", admin_port()},
             {"metrics_port", metrics_port()}});
  return absl::OkStatus();
}

absl::Status Server::LoadModels(const std::function<bool()>& stop) {
  const auto changed = [this](const repository::ModelVersion& version) {
    if (draining_.load()) return;
    health_.SetServing(version.health_name(),
                       repository_.IsServing(version.id()));
    // Checks draining_ a second time. Shutdown() may have set draining_ after
    // the check above, and health must then be NOT_SERVING.
    if (draining_.load()) health_.SetServing(version.health_name(), false);
  };
  const absl::Status status =
      scanned_.ok() ? repository_.LoadAll(changed, stop) : scanned_;
  if (absl::IsCancelled(status)) return status;
  if (status.ok() || !config_.exit_on_load_error()) {
    const absl::Status opened = OpenRequestPorts();
    if (!opened.ok()) return opened;
  }
  bool any_ready = false;
  for (const auto& version : repository_.List()) {
    any_ready |= version->state() == observability::ModelState::kReady;
  }
  if (status.ok() || (any_ready && !config_.exit_on_load_error())) {
    for (const char* name : kServiceNames) health_.SetServing(name, true);
    log_.Info(observability::LogModule::kServer, "serving");
  }
  return status;
}

void Server::DeviceFailed(const absl::Status& status) {
  device_failed_.store(true);
  health_.Fail();
  log_.Error(observability::LogModule::kServer, "a device has failed for good",
             {{"error", status.message()}});
  options_.device_failed();
}

absl::Duration Server::Backlog() const {
  absl::Duration longest;
  for (const auto& version : repository_.List()) {
    longest = std::max(longest, version->metrics()->backlog());
  }
  return longest;
}

bool Server::IsAlive() const {
  for (const auto& version : repository_.List()) {
    const auto model = version->Loaded();
    if (model.ok() && !(*model)->executor->IsAlive(options_.clock()))
      return false;
  }
  return true;
}

void Server::UpdateLiveness() {
  for (const auto& version : repository_.List()) {
    const auto model = version->Loaded();
    if (!model.ok()) continue;
    version->metrics()->AliveIs((*model)->executor->IsAlive(options_.clock()));
    LogLostGpus(version->name(), *(*model)->executor);
  }
  log_.ReportLeftOut();
  metrics_.LogLinesDropped(log_.TakeDropped());
  const tracing::Collector::Counts spans = tracer_->TakeCounts();
  metrics_.SpansExported(spans.exported);
  metrics_.SpansDropped(spans.dropped);
  health_.UpdateLiveness();
}

void Server::LogLostGpus(const std::string& model,
                         const batching::Executor& executor) {
  auto& [known, device] = devices_[model];
  const std::string now = executor.device();
  // executor.device() changes when a GPU is lost. It may also differ after the
  // model was reloaded, because the new executor may use another device. A
  // different device() therefore means a lost GPU only if the model has the
  // same executor as at the last check.
  if (known == &executor && device != now) {
    log_.Warning(observability::LogModule::kModels,
                 "a GPU has failed: its batches run on the others",
                 {{"model", model}, {"device", now}});
  }
  known = &executor;
  device = now;
}

bool Server::Shutdown() {
  log_.Info(observability::LogModule::kServer, "draining");
  draining_.store(true);
  health_.SetNoneServing();
  if (is_open() && !device_failed_.load()) {
    absl::SleepFor(base::FromProto(config_.drain_delay()));
  }
  vision_.StartDraining();
  kserve_.StartDraining();
  changes_.StartDraining();
  if (rest_ != nullptr) rest_->StartDraining();
  health_.EndWatches();
  const absl::Duration timeout = base::FromProto(config_.drain_timeout());
  const absl::Time start = base::SteadyNow();
  if (admin_grpc_ != nullptr) admin_grpc_->Shutdown(absl::ZeroDuration());
  // Sends GOAWAY immediately. gRPC 1.51 cancels each call that arrives after
  // the server has sent the GOAWAY. A client may still send such a call until
  // it has read the GOAWAY. The server cannot avoid this. A pause before the
  // GOAWAY, in which calls are refused, would not reduce the number of
  // cancelled calls.
  if (grpc_ != nullptr) grpc_->Shutdown(timeout);
  bool clean = base::SteadyNow() < start + timeout;
  // HTTP/1.1 has no GOAWAY. The server therefore refuses HTTP requests for a
  // while before it closes the connections.
  if (rest_ != nullptr) {
    const absl::Time refused = start + options_.refusal_window;
    absl::SleepFor(refused - base::SteadyNow());
    clean &= rest_->Drain(refused + timeout - base::SteadyNow());
  }
  if (health_grpc_ != nullptr) health_grpc_->Shutdown(absl::ZeroDuration());
  if (clean) {
    log_.Info(observability::LogModule::kServer, "drained");
  } else {
    log_.Error(observability::LogModule::kServer,
               "drain_timeout has passed: the calls left were cancelled");
  }
  const absl::Time ended = base::SteadyNow();
  is_sending_spans_ = !tracer_->Stop(kLastSpans);
  absl::SleepFor(ended + options_.scrape_window - base::SteadyNow());
  return clean;
}

}  // namespace sfmamba::server
