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
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/repository/model_repository.h"
#include "server/rest/rest_port.h"
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
#include "sfmamba/v1/admin.pb.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The complete server. A server is used in these steps:
//
//   auto server = Server::Start(options, &log);  // Serves health and metrics.
//   (*server)->LoadModels();                     // Then serves all requests.
//   (*server)->Shutdown();                       // Then serves nothing.
//
// LoadModels() and Shutdown() must be called by the same thread, at most once
// each. All other methods are thread-safe.
class Server {
 public:
  struct Options {
    v1::ServerConfig config;  // Valid, with defaults from WithDefaults().
    observability::BuildInfo build;
    repository::ModelRepository::Load load;
    // Each low-priority thread that prepares models calls this function first.
    std::function<void()> background_starts = [] {};
    // Called every second. Must return unused memory of the models to the
    // system.
    std::function<void()> release_memory = [] {};
    // The clock for the deadlines of calls.
    std::function<absl::Time()> clock = base::SteadyNow;
    // Called on any thread each time a model's device fails permanently. Must
    // not block. Afterwards the server is NOT_SERVING.
    std::function<void()> device_failed = [] {};
    // During a shutdown, the server refuses HTTP requests for this time before
    // it closes their connections. Must be longer than a network round trip.
    absl::Duration refusal_window = absl::Milliseconds(500);
    // During a shutdown, metrics can still be scraped for this time after the
    // last call has ended.
    absl::Duration scrape_window = absl::Seconds(1);
  };

  // Opens the ports for metrics, health and administration, and finds the
  // models. The models are then LOADING. Every health service except "liveness"
  // is NOT_SERVING. Returns UNAVAILABLE with host and port if a port cannot be
  // bound. Returns INVALID_ARGUMENT if the trusted proxies, tokens or
  // certificates cannot be used. The error names the setting.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const Options& options, observability::Logger* log);
  // Cancels all calls that are still running, for example if Shutdown() was not
  // called.
  ~Server();

  // Returns true if the ports for requests are open.
  bool is_open() const { return grpc_ != nullptr; }
  // Returns the number of the gRPC port, or 0 if is_open() is false.
  int port() const { return grpc_ == nullptr ? 0 : grpc_->port(); }
  // Each of the following functions returns the number of a port, or -1 if this
  // port is not open.
  int health_port() const {
    return health_grpc_ == nullptr ? -1 : health_grpc_->port();
  }
  // Returns -1 if AdminService has no separate port. The gRPC port then serves
  // AdminService.
  int admin_port() const {
    return admin_grpc_ == nullptr ? -1 : admin_grpc_->port();
  }
  int metrics_port() const { return metrics_server_->port(); }
  int http_port() const { return rest_ == nullptr ? -1 : rest_->port(); }

  // Loads and warms up the models, opens the HTTP and gRPC ports, and then
  // becomes SERVING. If models cannot be found or loaded, returns the first
  // error. Unless exit_on_load_error is set, the ports open even after such an
  // error, and the server becomes SERVING if another model is ready. If a port
  // cannot be bound, returns the error of OpenRequestPorts().
  //
  // If `stop` returns true, loading ends with CANCELLED. `stop` is also called
  // for later loads during the server's lifetime.
  absl::Status LoadModels(const std::function<bool()>& stop = [] {
    return false;
  });

  // Opens the HTTP and gRPC ports. Does nothing if they are already open.
  // LoadModels() calls this function, but callers may call it earlier. Returns
  // UNAVAILABLE with host and port if a port cannot be bound.
  absl::Status OpenRequestPorts();

  // Drains the server in these steps:
  // 1. Health is NOT_SERVING for drain_delay, and calls are still answered.
  //    This step is skipped if a device has failed permanently.
  // 2. gRPC connections receive GOAWAY, so that clients use another server.
  // 3. HTTP requests are refused for refusal_window.
  // 4. The server waits up to drain_timeout for the remaining calls.
  // Returns false if calls had to be cancelled.
  bool Shutdown();
  // Returns true if spans (records for tracing) are still being sent after
  // Shutdown(). The destructor then waits for up to 5 s until they are sent.
  bool is_sending_spans() const { return is_sending_spans_; }

 private:
  Server(const Options& options, observability::Logger* log);

  // Does the work of Start() after the constructor: opens the ports for
  // metrics, health and administration, and finds the models.
  absl::Status Open();
  // Returns UNAVAILABLE if a port for requests is in use.
  absl::Status CheckPorts() const;

  // Creates the tracer, which sends spans to the collector. The tracer logs
  // when the collector starts to fail and when it works again.
  std::unique_ptr<tracing::Tracer> MakeTracer();
  // These two functions return callbacks that count and log refused callers,
  // TLS events and gRPC's own errors.
  security::Security::Events SecurityEvents();
  rpc::GrpcLog::Options GrpcLogOptions();

  // Returns references to the parts of the server that both gRPC and HTTP use.
  prediction::TransportEnvironment Environment();
  // Returns the methods of all services.
  std::vector<call::Method> Methods();

  rest::RestPort::Options RestOptions();

  // Returns the options that all gRPC ports share.
  rpc::GrpcPort::Options PortOptions(int port,
                                     std::vector<grpc::Service*> services);
  rpc::GrpcPort::Options GrpcOptions();
  rpc::GrpcPort::Options HealthPortOptions();
  rpc::GrpcPort::Options AdminPortOptions();
  // Returns the server's description for AdminMethods().
  v1::ServerInfo Build() const;

  void DeviceFailed(const absl::Status& status);
  // Returns the longest backlog of all models. The backlog of a model is the
  // expected time until the model has processed all images that wait now. A new
  // image may wait for less time than the backlog, because clients take turns.
  // The image then runs before some of the waiting images of other clients.
  absl::Duration Backlog() const;
  // Returns false if a batch of any model hangs or a model's device has failed.
  bool IsAlive() const;
  // Updates the liveness in metrics and health watches. Also logs lost GPUs.
  void UpdateLiveness();
  // Logs once that a model has lost one of its GPUs.
  void LogLostGpus(const std::string& model,
                   const batching::Executor& executor);

  const Options options_;
  const v1::ServerConfig& config_ = options_.config;
  observability::Logger& log_;
  std::atomic<bool> device_failed_{false};
  std::atomic<bool> draining_{false};
  // The executor and the device of each model at the last check. Used only by
  // the thread of housekeeping_.
  std::map<std::string, std::pair<const batching::Executor*, std::string>>
      devices_;
  MemoryBudget memory_;
  observability::Metrics metrics_;
  std::unique_ptr<http::HttpServer> metrics_server_;
  rpc::GrpcLog grpc_log_;
  const std::unique_ptr<tracing::Tracer> tracer_;
  bool is_sending_spans_ = false;
  security::Security security_;
  batching::QueueRoom decode_room_;
  batching::QueueRoom finish_room_;
  prediction::ExpectedCosts costs_;
  FairPool finish_pool_;
  rpc::HealthService health_;
  // The order of the members is important, because members are destroyed from
  // the last to the first. Executors need finish_pool_ to complete their tasks,
  // and decode_pool_ submits tasks to executors.
  repository::ModelRepository repository_;
  FairPool decode_pool_;
  ClientSet without_deadline_;
  rpc::LoadReports load_reports_;
  admin::RuntimeSettings settings_;
  admin::ModelChanges changes_;
  const call::MethodTable methods_;
  rpc::MethodService vision_;
  rpc::MethodService kserve_;
  rpc::MethodService admin_;
  // The error that occurred when the server searched for models, or OK.
  absl::Status scanned_;
  std::unique_ptr<rest::RestPort> rest_;  // Null if there is no HTTP port.
  // Null if there is no health port.
  std::unique_ptr<rpc::GrpcPort> health_grpc_;
  std::unique_ptr<rpc::GrpcPort> admin_grpc_;  // Null if grpc_ serves admin_.
  std::unique_ptr<rpc::GrpcPort> grpc_;        // Uses the members above.
  HeapTrim heap_trim_;                         // Used only by housekeeping_.
  // This member is last, because its thread uses the members above.
  Worker housekeeping_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SERVER_H_
