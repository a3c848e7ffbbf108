#ifndef SFMAMBA_SERVER_SERVER_H_
#define SFMAMBA_SERVER_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/admin/model_changes.h"
#include "server/admin/runtime_settings.h"
#include "server/batching/executor.h"
#include "server/batching/reservation.h"
#include "server/call/method_table.h"
#include "server/host/heap_trim.h"
#include "server/http/metrics_server.h"
#include "server/kserve/kserve_service.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/repository/model_repository.h"
#include "server/rest/rest_port.h"
#include "server/rpc/admin/admin_service.h"
#include "server/rpc/health.h"
#include "server/rpc/load_reports.h"
#include "server/rpc/method_service.h"
#include "server/rpc/port/grpc_port.h"
#include "server/security/security.h"
#include "server/shares/client_set.h"
#include "server/shares/memory_budget.h"
#include "server/threads/fair_pool.h"
#include "server/threads/worker.h"
#include "server/tracing/tracer.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The whole server, its parts in order of construction.
//
//   auto server = Server::Start(options, &log);  // Health and metrics alone.
//   (*server)->LoadModels();                     // Ports open, SERVING.
//   (*server)->Shutdown();
//
// LoadModels() and Shutdown() are called by one thread, at most once each; the
// rest is thread-safe.
class Server {
 public:
  struct Options {
    v1::ServerConfig config;  // WithDefaults, and valid.
    observability::BuildInfo build;
    repository::ModelRepository::Load load;
    std::function<void()> background_starts = [] {};  // See ModelRepository.
    // Called every second: gives the system what models keep and do not need.
    std::function<void()> release_memory = [] {};
    // The clock that the deadlines of calls are compared with.
    std::function<absl::Time()> clock = base::SteadyNow;
    // Called on any thread, each time that a model's device has failed for
    // good. Must not block. The server is NOT_SERVING from then on.
    std::function<void()> device_failed = [] {};
    // How long HTTP requests are refused before their connections are closed.
    // It must be longer than a round trip.
    absl::Duration refusal_window = absl::Milliseconds(500);
    // How long metrics can still be scraped after the last call has ended.
    absl::Duration scrape_window = absl::Seconds(1);
  };

  // Opens the ports of metrics, health and administration, and finds the
  // models, which are then LOADING. Every health name but "liveness" is
  // NOT_SERVING. UNAVAILABLE, naming host and port, if a port cannot be bound.
  // INVALID_ARGUMENT, naming file or setting, if the tokens or the certificates
  // cannot be used.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, observability::Logger* log);
  // Cancels the calls that Shutdown() has not waited for.
  ~Server();

  // Whether the ports for requests are open.
  bool is_open() const { return grpc_ != nullptr; }
  // 0 unless is_open().
  int port() const { return grpc_ == nullptr ? 0 : grpc_->port(); }
  // -1 if there is none, here and below.
  int health_port() const {
    return health_grpc_ == nullptr ? -1 : health_grpc_->port();
  }
  // -1 if AdminService is served at port().
  int admin_port() const {
    return admin_grpc_ == nullptr ? -1 : admin_grpc_->port();
  }
  int metrics_port() const { return metrics_server_->port(); }
  int http_port() const { return rest_ == nullptr ? -1 : rest_->port(); }

  // Loads and warms the models, opens the HTTP and the gRPC port, then becomes
  // SERVING. Returns the error of the search for models, or of the first model
  // that failed. Even then the ports open, and the server is SERVING if another
  // model is ready, unless exit_on_load_error is set. If a port cannot be
  // bound, returns OpenRequestPorts()'s error. CANCELLED once `stop` returns
  // true. It is asked as long as this lives, for models that are loaded later
  // too.
  absl::Status LoadModels(const std::function<bool()>& stop = [] {
    return false;
  });

  // Opens the HTTP and the gRPC port before LoadModels() does, unless they are
  // open. UNAVAILABLE, naming host and port, if one cannot be bound.
  absl::Status OpenRequestPorts();

  // Drains: is NOT_SERVING for drain_delay while calls are still answered (not
  // if a device has failed for good), then tells gRPC's connections to go
  // elsewhere (GOAWAY), refuses HTTP requests for refusal_window, and waits up
  // to drain_timeout for the calls that are left. Returns false if some had to
  // be cancelled.
  bool Shutdown();

 private:
  Server(const Options& options, observability::Logger* log);

  // The rest of Start().
  absl::Status Open();
  // UNAVAILABLE if a port for requests is in use.
  absl::Status CheckPorts() const;

  // Errors of the trace file or the collector are logged once until they end.
  std::unique_ptr<tracing::Tracer> MakeTracer();
  // What is counted and logged of callers, of TLS and of gRPC's own errors.
  security::Security::Events SecurityEvents();
  rpc::GrpcLog::Options GrpcLogOptions();

  // What predictions of all transports work with.
  prediction::TransportEnvironment Environment();
  kserve::KserveService::Options KserveOptions();

  // Null unless calls may load and unload models.
  admin::ModelChanges* ChangesByCalls();

  rest::RestPort::Options RestOptions();

  // What all gRPC ports have in common.
  rpc::GrpcPort::Options PortOptions(int port,
                                     std::vector<grpc::Service*> services);
  rpc::GrpcPort::Options GrpcOptions();
  rpc::GrpcPort::Options HealthPortOptions();
  rpc::GrpcPort::Options AdminPortOptions();
  rpc::AdminService::Environment AdminEnvironment();

  void DeviceFailed(const absl::Status& status);
  // How long the images that wait now will take, of the model that needs
  // longest if they are as its slowest kind. A single client's image may wait
  // for less.
  absl::Duration Backlog() const;
  // Whether every model makes progress.
  bool IsAlive() const;
  // Tells the metrics and the watches of "liveness", and the log of lost GPUs.
  void UpdateLiveness();
  // Logs once that a model, of several GPUs, has fewer than before.
  void LogLostGpus(const std::string& model,
                   const batching::Executor& executor);

  const Options options_;
  const v1::ServerConfig& config_ = options_.config;
  observability::Logger& log_;
  std::atomic<bool> device_failed_{false};
  std::atomic<bool> draining_{false};
  // What the models ran on at the last look, by model: of housekeeping_ only.
  std::map<std::string, std::pair<const batching::Executor*, std::string>>
      devices_;
  MemoryBudget memory_;
  observability::Metrics metrics_;
  std::unique_ptr<http::HttpServer> metrics_server_;
  const std::unique_ptr<tracing::Tracer> tracer_;
  security::Security security_;
  rpc::GrpcLog grpc_log_;
  batching::QueueRoom decode_room_;
  batching::QueueRoom finish_room_;
  prediction::ExpectedCosts costs_;
  FairPool finish_pool_;
  rpc::HealthService health_;
  // Executors end tasks on the pool above; the pool below hands them tasks.
  repository::ModelRepository repository_;
  FairPool decode_pool_;
  ClientSet without_deadline_;
  rpc::LoadReports load_reports_;
  admin::RuntimeSettings settings_;
  admin::ModelChanges changes_;
  const call::MethodTable methods_;
  rpc::MethodService vision_;
  kserve::KserveService kserve_;
  rpc::AdminService admin_;
  absl::Status scanned_;  // The result of the search for models.
  std::unique_ptr<rest::RestPort> rest_;        // Null if there is none.
  std::unique_ptr<rpc::GrpcPort> health_grpc_;  // Null if there is none.
  std::unique_ptr<rpc::GrpcPort> admin_grpc_;   // Null: grpc_ serves admin_.
  std::unique_ptr<rpc::GrpcPort> grpc_;         // Uses everything above.
  HeapTrim heap_trim_;                          // Used by housekeeping_ only.
  Worker housekeeping_;  // Last: it uses everything above.
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_H_
