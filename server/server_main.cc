#include "server/server_main.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "model/scan_tuning.h"
#include "server/host/descriptors.h"
#include "server/host/gpus.h"
#include "server/host/topology.h"
#include "server/observability/log.h"
#include "server/repository/golden.h"
#include "server/repository/golden_images.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_repository.h"
#include "server/scan_tuning.h"
#include "server/server.h"
#include "server/server_config.h"
#include "server/settings/flags.h"
#include "server/threads/steady_cond_var.h"
#include "server/threads/thread_name.h"

namespace sfmamba::server {
namespace {

// The time that a shutdown may take in addition to drain_delay and
// drain_timeout. In this time, the server refuses HTTP requests, answers the
// last scrapes of metrics and writes the last log lines.
constexpr absl::Duration kEndingTime = absl::Milliseconds(1700);
// The time limit for writing the last log lines.
constexpr absl::Duration kLastLines = absl::Milliseconds(300);

enum ExitCode {
  kClean = 0,
  kBadConfig = 2,
  kLoadFailed = 3,
  kCannotBind = 4,
  kNoDevice = 5,
  kDrainTimeout = 6,
  kDeviceFailed = 7,
};

// Stores whether the server must end, and with which exit code. Thread-safe.
class EndRequest {
 public:
  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  // Asks the server to end after a failure. The process then exits with `code`.
  // If several failures are reported, the first one determines the exit code.
  void Fail(ExitCode code) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    if (failure_ == kClean) failure_ = code;
  }
  void Wait() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_, absl::Condition(&stop_));
  }
  // Reports that the server has stopped, so that WaitUntilEnded() returns.
  void Ended() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    stop_ = ended_ = true;
    ended_now_.SignalAll();
  }
  // Waits until the server is asked to end. From then on, waits up to `limit`
  // until Ended() is called. Returns false if `limit` passes first.
  bool WaitUntilEnded(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_, absl::Condition(&stop_));
    return ended_now_.Await(
        &mu_, limit,
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; });
  }
  bool stop() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return stop_;
  }
  // Returns the exit code of the failure, or `other` if there was no failure.
  ExitCode CodeOr(ExitCode other) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return failure_ == kClean ? other : failure_;
  }

 private:
  mutable absl::Mutex mu_;
  server::SteadyCondVar ended_now_;  // Signalled when ended_ changes.
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  ExitCode failure_ ABSL_GUARDED_BY(mu_) = kClean;
};

// Returns the configuration. Flags have priority over the configuration file,
// and the file has priority over the defaults. Returns an error if a value is
// invalid.
absl::StatusOr<v1::ServerConfig> EffectiveConfig(const CommandLine& line) {
  v1::ServerConfig config;
  if (!line.command.config().empty()) {
    absl::StatusOr<v1::ServerConfig> file =
        ReadServerConfig(line.command.config());
    if (!file.ok()) return file.status();
    config = *std::move(file);
  }
  ApplyFlags(line, &config);
  const bool default_budget = config.memory_budget_bytes() == 0;
  ProcessMemory memory = ThisProcessMemory();
  memory.models = repository::MemoryOfModels(config);
  config = WithDefaults(std::move(config), memory);
  absl::Status status = Validate(config);
  if (status.ok()) status = CheckMemory(memory, default_budget, config);
  if (!status.ok()) return status;
  return config;
}

// Starts a thread that waits for `signals`. The first signal stops the server.
// The second SIGTERM or SIGINT ends the process immediately. All threads of the
// process must block `signals`.
void WatchSignals(const sigset_t& signals, std::shared_ptr<EndRequest> end) {
  std::thread([signals, end = std::move(end)] {
    NameThisThread("signals");
    int signal = 0;
    // SIGHUP is not counted, because terminals send several SIGHUP signals and
    // systemd sends one together with SIGTERM.
    for (int counted = 0; counted < 2; counted += signal != SIGHUP) {
      sigwait(&signals, &signal);
      end->Stop();
    }
    _exit(128 + signal);
  }).detach();
}

// Limits the time of a shutdown. A timer starts when the server is asked to
// end. The timer runs for the sum of drain_delay, drain_timeout and
// kEndingTime, then ends the process. The server may need more time, because a
// model load or a batch cannot be interrupted. The destructor cancels the
// timer.
class EndAfterDrain {
 public:
  // `log` must outlive this object.
  EndAfterDrain(const v1::ServerConfig& config, EndRequest* end,
                observability::Logger* log)
      : end_(*end) {
    const absl::Duration limit = base::FromProto(config.drain_delay()) +
                                 base::FromProto(config.drain_timeout()) +
                                 kEndingTime;
    thread_ = std::thread([limit, end, log] {
      NameThisThread("drain");
      if (end->WaitUntilEnded(limit)) return;
      log->Error(observability::LogModule::kServer,
                 "a load, a batch or an answer outlives the drain: ending "
                 "without it");
      (void)log->Flush(kLastLines);
      _exit(end->CodeOr(kDrainTimeout));
    });
  }
  ~EndAfterDrain() {
    end_.Ended();
    thread_.join();
  }

 private:
  EndRequest& end_;
  std::thread thread_;
};

// Returns the function that loads a model. If there are no GPUs, the function
// loads the model for the CPU. If there are GPUs, the function loads the model
// on all of them.
//
// Before a load on GPUs, the function chooses how each scan of the model will
// run. A scan is the recurrent operation of a Mamba layer. A way to run a scan
// is called a plan. The fold table contains the plans that were the fastest in
// measurements. If a scan has no entry in this table, the function measures the
// scan on the first of `gpus`, unless the configuration forbids measurements
// (see ScanTunerOptions()).
absl::StatusOr<repository::ModelRepository::Load> MakeLoad(
    const v1::ServerConfig& config, const std::vector<int>& gpus,
    const Engine& engine, observability::Logger* log) {
  model::ModelOptions options;
  options.gpus = gpus;
  options.slots_per_gpu = config.slots_per_gpu();
  options.deterministic = config.deterministic();
  options.exact_gelu = config.exact_gelu();
  if (gpus.empty() && config.cpu_contexts() > 1) {
    options.processor_groups = MakeGroups(
        AllowedTopology(), config.cpu_contexts(), config.compute_threads());
  }
  std::shared_ptr<model::ScanTuner> tuner;
  if (!gpus.empty()) {
    absl::StatusOr<std::unique_ptr<model::ScanTuner>> made =
        engine.make_scan_tuner(gpus.front(), ScanTunerOptions(config, log));
    if (!made.ok()) return made.status();
    tuner = *std::move(made);
  }
  return
      [&engine, options, tuner](
          const repository::ModelDirectory& directory,
          repository::ModelRepository::CaptureFailed capture_failed) mutable {
        options.capture_failed = std::move(capture_failed);
        if (tuner != nullptr) {
          options.scan_plans = tuner->PlansFor(
              {directory.config, directory.batch.max_batch_size});
        }
        return engine.load(directory.config, directory.weights_paths, options);
      };
}

int Serve(const v1::ServerConfig& config, const std::vector<int>& gpus,
          const Engine& engine, std::shared_ptr<EndRequest> end,
          observability::Logger* log) {
  Server::Options options;
  options.config = config;
  options.build = engine.build;
  absl::StatusOr<repository::ModelRepository::Load> load =
      MakeLoad(config, gpus, engine, log);
  if (!load.ok()) {
    log->Error(observability::LogModule::kServer, "models cannot be loaded",
               {{"error", load.status().message()}});
    return kLoadFailed;
  }
  options.load = *std::move(load);
  options.background_starts = engine.compute_alone;
  options.release_memory = engine.release_memory;
  options.device_failed = [end] { end->Fail(kDeviceFailed); };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log);
  if (!server.ok()) {
    log->Error(observability::LogModule::kServer, "cannot start",
               {{"error", server.status().message()}});
    return absl::IsInvalidArgument(server.status()) ? kBadConfig : kCannotBind;
  }
  // On a GPU, each context (concurrent batch) needs only one CPU thread.
  engine.set_compute_threads(gpus.empty() ? config.compute_threads() : 1);
  const absl::Status loaded =
      (*server)->LoadModels([&end] { return end->stop(); });
  if (!loaded.ok()) {
    const bool is_open = (*server)->is_open();
    log->Error(observability::LogModule::kServer,
               is_open ? "models did not load" : "the server cannot serve",
               {{"error", loaded.message()}});
    if (!absl::IsCancelled(loaded) &&
        (config.exit_on_load_error() || !is_open)) {
      return end->CodeOr(kLoadFailed);
    }
  }
  end->Wait();
  const bool clean = (*server)->Shutdown();
  const ExitCode code = end->CodeOr(clean ? kClean : kDrainTimeout);
  // Exits without destroying the server in two cases. If a device has failed,
  // its memory cannot be freed. If spans are still being sent, the destructor
  // would wait for them.
  if (code == kDeviceFailed || (*server)->is_sending_spans()) {
    (void)log->Flush(kLastLines);
    _exit(code);
  }
  return code;
}

int Tune(const v1::ServerConfig& config, const std::vector<int>& gpus,
         const model::FoundGpus& found, const Engine& engine,
         observability::Logger* log) {
  if (config.fold_table().empty()) {
    log->Error(observability::LogModule::kServer,
               "--tune needs --fold_table, to be written");
    return kBadConfig;
  }
  if (gpus.empty()) {
    log->Error(observability::LogModule::kServer, "--tune needs a GPU",
               {{"device", config.device()}, {"found", found.why_none}});
    return kNoDevice;
  }
  const absl::StatusOr<std::vector<model::ModelToTune>> models =
      ModelsToTune(config);
  if (!models.ok()) {
    log->Error(observability::LogModule::kServer, "the models cannot be read",
               {{"error", models.status().message()}});
    return kLoadFailed;
  }
  const absl::StatusOr<model::ScanMeasurement> tuned =
      engine.tune_scans(gpus.front(), *models, config.fold_table());
  if (!tuned.ok()) {
    log->Error(observability::LogModule::kServer, "tuning failed",
               {{"error", tuned.status().message()}});
    return kDeviceFailed;
  }
  log->Info(observability::LogModule::kServer, "the fold table is written",
            {{"fold_table", config.fold_table()},
             {"gpu", found.names[gpus.front()]},
             {"scans", tuned->unknown},
             {"measured", tuned->measured}});
  return kClean;
}

// Writes a golden file for each model version that a server with this
// configuration would load at startup. The file contains images and the model's
// results for these images. Returns an exit code.
int WriteGolden(const v1::ServerConfig& config, const std::vector<int>& gpus,
                const Engine& engine, observability::Logger* log) {
  absl::StatusOr<repository::ModelRepository::Load> load =
      MakeLoad(config, gpus, engine, log);
  const auto write = [&](const repository::ModelVersion& version,
                         const repository::ModelDirectory& directory) {
    const auto model = (*load)(directory, [](const absl::Status&) {});
    if (!model.ok()) return model.status();
    const auto images = repository::AnswerGoldenImages(**model);
    if (!images.ok()) return images.status();
    const absl::Status written =
        repository::WriteGolden(version.path().folder, *images);
    if (!written.ok()) return written;
    log->Info(observability::LogModule::kModels, "golden answers are written",
              {{"model", version.name()},
               {"images", static_cast<int>(images->size())}});
    return absl::OkStatus();
  };
  absl::Status status = load.status();
  if (status.ok()) status = repository::ForEachServed(config, log, write);
  if (status.ok()) return kClean;
  log->Error(observability::LogModule::kServer,
             "golden answers cannot be written", {{"error", status.message()}});
  return kLoadFailed;
}

}  // namespace

int ServerMain(int argc, char** argv, const Engine& engine) {
  FillStandardDescriptors();
  RaiseDescriptorLimit();
  signal(SIGPIPE, SIG_IGN);
  // A write beyond the limit of `ulimit -f` sends SIGXFSZ, which would end the
  // process. If the signal is ignored, the write returns an error.
  signal(SIGXFSZ, SIG_IGN);
  // Turns off the deadlock detection of Debian's Abseil. The detection would
  // take a global lock in each lock operation.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // The server sends spans to the collector by gRPC, and must connect to the
  // collector directly. If one of these variables were set, gRPC would connect
  // through the proxy that the variable names.
  for (const char* proxy : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    unsetenv(proxy);
  }
  // Protobuf must not write its own text to the log, which consists of JSON
  // lines. The messages of gRPC are redirected to the log.
  google::protobuf::SetLogHandler(nullptr);

  CommandLine line;
  const absl::Status parsed = ParseFlags(argc, argv, &line);
  if (!parsed.ok()) {
    std::fprintf(stderr, "%s\n", std::string(parsed.message()).c_str());
    return kBadConfig;
  }
  if (line.command.help()) {
    std::printf("sfmamba_server [flags]\n%s", FlagsHelp().c_str());
    return kClean;
  }
  if (line.command.version()) {
    std::printf("sfmamba_server %s\n", engine.build.version.c_str());
    return kClean;
  }
  absl::StatusOr<v1::ServerConfig> config = EffectiveConfig(line);
  const absl::Status environment = engine.check_environment();
  if (!environment.ok()) config = environment;
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(config.status().message()).c_str());
    return kBadConfig;
  }
  if (line.command.print_effective_config()) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(*config, &text);
    std::printf("%s", text.c_str());
  }
  if (line.command.print_effective_config() || line.command.validate_config()) {
    return kClean;
  }
  // Blocks the signals before the first thread starts, because threads inherit
  // the signal mask. Until then, a signal ends the process, for example while
  // the process reads its configuration from a pipe.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  // A process under nohup ignores SIGHUP. `signals` must not contain SIGHUP
  // then, because sigwait() receives even ignored signals.
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  observability::Logger log(
      stderr, *observability::ParseLogLevels(config->log_level()),
      *observability::ParseLogFormat(config->log_format()));
  auto end = std::make_shared<EndRequest>();
  std::optional<EndAfterDrain> limit;
  if (line.command.tune()) {
    // The flag --tune means that the process only measures the models' scans
    // and does not serve. A signal then ends the process immediately, because
    // no server must be drained.
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  } else {
    WatchSignals(signals, end);
    limit.emplace(*config, end.get(), &log);
  }
  const model::FoundGpus found = engine.find_gpus();
  const absl::StatusOr<std::vector<int>> gpus = ChooseGpus(*config, found);
  if (!gpus.ok()) {
    log.Error(observability::LogModule::kServer, "no usable device",
              {{"error", gpus.status().message()}});
    return kNoDevice;
  }
  config->set_device(gpus->empty() ? "cpu" : "cuda");  // Replaces "auto".
  if (line.command.write_golden()) {
    return WriteGolden(*config, *gpus, engine, &log);
  }
  return line.command.tune() ? Tune(*config, *gpus, found, engine, &log)
                             : Serve(*config, *gpus, engine, end, &log);
}

}  // namespace sfmamba::server
