// The server's command: flags to options, signals to Shutdown.
//
// Exit codes: 0 clean, 1 internal error, 2 bad flags or configuration, 3 a
// model did not load, 4 a port cannot be bound, 6 drain_timeout has passed, 128
// + n ended at once by a second signal n.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "model/runtime.h"
#include "model/vision_model.h"
#include "server/convert.h"
#include "server/flags.h"
#include "server/log.h"
#include "server/server.h"
#include "server/server_config.h"
#include "server/thread_name.h"

namespace sfmamba {
namespace {

constexpr char kVersion[] = "0.1.0";
constexpr uint64_t kRandomSeed = 0;  // Of weights that nobody has trained.

// What the end takes beside drain_delay and drain_timeout: the refusals before,
// the last scrapes after.
constexpr absl::Duration kEndingTime = absl::Seconds(3);

enum ExitCode {
  kClean = 0,
  kInternal = 1,
  kBadConfig = 2,
  kLoadFailed = 3,
  kCannotBind = 4,
  kDrainTimeout = 6,
};

// The flags, over the configuration file, over the defaults.
absl::StatusOr<v1::ServerConfig> EffectiveConfig(const CommandLine& line) {
  v1::ServerConfig config;
  if (!line.config_path.empty()) {
    absl::StatusOr<v1::ServerConfig> file = ReadServerConfig(line.config_path);
    if (!file.ok()) return file.status();
    config = *std::move(file);
  }
  ApplyFlags(&config);
  config = WithDefaults(std::move(config));
  const absl::Status status = Validate(config);
  if (!status.ok()) return status;
  return config;
}

// Waits for SIGTERM or SIGINT on a thread of its own: the first notifies
// `stop`, the second ends the process. The signals must be blocked in all
// threads.
void WatchSignals(const sigset_t& signals,
                  std::shared_ptr<absl::Notification> stop) {
  std::thread([signals, stop = std::move(stop)] {
    NameThisThread("signals");
    int signal = 0;
    sigwait(&signals, &signal);
    stop->Notify();
    sigwait(&signals, &signal);
    _exit(128 + signal);
  }).detach();
}

// Ends the process when the drain is over, whatever still runs: a batch cannot
// be interrupted, and its calls end with it.
void EndAfterDrain(const v1::ServerConfig& config, Logger* log) {
  const absl::Duration limit = FromProto(config.drain_delay()) +
                               FromProto(config.drain_timeout()) + kEndingTime;
  std::thread([limit, log] {
    NameThisThread("drain");
    absl::SleepFor(limit);
    log->Error(LogModule::kServer,
               "a batch outlives the drain: ending without it");
    _exit(kDrainTimeout);
  }).detach();
}

int Run(const v1::ServerConfig& config, const sigset_t& signals, Logger* log) {
  Server::Options options;
  options.config = config;
  options.build.version = kVersion;
  options.build.torch = TorchVersion();
  options.load = [](const ModelConfig& model, const std::string& path) {
    return path.empty() ? VisionModel::Random(model, kRandomSeed)
                        : VisionModel::Load(model, path);
  };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log);
  if (!server.ok()) {
    log->Error(LogModule::kServer, "cannot start",
               {{"error", server.status().message()}});
    return kCannotBind;
  }
  auto stop = std::make_shared<absl::Notification>();
  WatchSignals(signals, stop);
  SetComputeThreads(config.compute_threads());
  const absl::Status loaded =
      (*server)->LoadModels([&stop] { return stop->HasBeenNotified(); });
  const bool give_up =
      !loaded.ok() && !absl::IsCancelled(loaded) && config.exit_on_load_error();
  if (!loaded.ok()) {
    log->Error(LogModule::kServer, "models did not load",
               {{"error", loaded.message()}});
  }
  if (give_up) return kLoadFailed;
  stop->WaitForNotification();
  EndAfterDrain(config, log);
  return (*server)->Shutdown() ? kClean : kDrainTimeout;
}

// Idle compute threads must sleep after a fraction of a millisecond. By default
// libgomp's spin far longer, and where they share the processors with decoding
// and gRPC a batch takes twice as long; sleeping at once makes a lone image
// slower. libgomp reads this before main, so that the process is started anew;
// if that is refused, it runs all the same.
void LetIdleThreadsSleep(char** argv) {
  if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "20000", 1);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(self.c_str(), argv);
}

int Main(int argc, char** argv) {
  LetIdleThreadsSleep(argv);
  // Before the first thread, so that all inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // The log is JSON lines; these libraries would write their own among them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  google::protobuf::SetLogHandler(nullptr);

  CommandLine line;
  const absl::Status parsed = ParseFlags(argc, argv, &line);
  if (!parsed.ok()) {
    std::fprintf(stderr, "%s\n", std::string(parsed.message()).c_str());
    return kBadConfig;
  }
  if (line.help) {
    std::printf("sfmamba_server [flags]\n%s", FlagsHelp().c_str());
    return kClean;
  }
  absl::StatusOr<v1::ServerConfig> config = EffectiveConfig(line);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n",
                 std::string(config.status().message()).c_str());
    return kBadConfig;
  }
  if (line.print_effective_config) {
    std::string text;
    google::protobuf::TextFormat::PrintToString(*config, &text);
    std::printf("%s", text.c_str());
  }
  if (line.print_effective_config || line.validate_config) return kClean;
  Logger log(stderr, *ParseLogLevels(config->log_level()),
             *ParseLogFormat(config->log_format()));
  return Run(*config, signals, &log);
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  try {
    return sfmamba::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "internal error: %s\n", error.what());
    return sfmamba::kInternal;
  }
}
