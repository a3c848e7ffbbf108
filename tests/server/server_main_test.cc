// Tests how sfmamba_server uses the inference engine on GPUs. The engine is a
// fake, so the tests need no GPU.
#include "server/server_main.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "model/tuning/scan_plan_table.h"
#include "server/host/topology.h"
#include "tests/server/fake_model.h"
#include "tests/server/running_server.h"

namespace sfmamba::server {
namespace {

using testing::ExitedWithCode;

// Writes a line in one piece, because other threads also write to the log.
void Say(const std::string& line) { std::cerr << line + "\n"; }

// Prints the maximum batch size of the model for which PlansFor() is called.
// Returns an empty table.
class FakeTuner : public model::ScanTuner {
 public:
  std::shared_ptr<const tuning::ScanPlanTable> PlansFor(
      const model::ModelToTune& model) override {
    Say(absl::StrCat("plans for batches of ", model.max_batch));
    return std::make_shared<tuning::ScanPlanTable>(tuning::ScanDevice{});
  }
};

// Runs sfmamba_server with two fake GPUs. Loading a model fails with an error
// that lists the options of the load.
class ServerMainDeathTest : public testing::Test {
 protected:
  ServerMainDeathTest() {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    WriteModel(repository_, "m", "1", "max_batch_size: 24");
    engine_.find_gpus = [] { return model::FoundGpus{{"A", "B"}, "", {}}; };
    engine_.load = [](const model::ModelConfig&, absl::Span<const std::string>,
                      const model::ModelOptions& options)
        -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
      options.capture_failed(absl::InternalError("no graph today"));
      return absl::InternalError(
          absl::StrCat("gpus ", absl::StrJoin(options.gpus, ","), " slots ",
                       options.slots_per_gpu, " deterministic ",
                       options.deterministic, " exact ", options.exact_gelu,
                       " plans ", options.scan_plans != nullptr, " groups ",
                       options.processor_groups.size()));
    };
    engine_.make_scan_tuner = [](int gpu, const model::ScanTuner::Options& o)
        -> absl::StatusOr<std::unique_ptr<model::ScanTuner>> {
      Say(absl::StrCat("tuner of ", gpu, " with ", o.path));
      return std::make_unique<FakeTuner>();
    };
    engine_.tune_scans =
        [](int gpu, absl::Span<const model::ModelToTune> all,
           const std::string& path) -> absl::StatusOr<model::ScanMeasurement> {
      if (path == "unwritable") return absl::InternalError("no such disk");
      Say(absl::StrCat("tuned ", all.size(), " on ", gpu));
      return model::ScanMeasurement{/*unknown=*/7, /*measured=*/5, {}};
    };
    engine_.set_compute_threads = [](int threads) {
      Say(absl::StrCat("compute threads ", threads));
    };
  }

  // Runs sfmamba_server and ends this process with its exit code.
  [[noreturn]] void Run(std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"sfmamba_server", "--model_repository=" + repository_,
                  "--port=0", "--http_port=0", "--metrics_port=0"});
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    std::exit(
        ServerMain(static_cast<int>(flags.size()), arguments.data(), engine_));
  }

  const std::string repository_ = NewFolder("models");
  Engine engine_;
};

TEST_F(ServerMainDeathTest, ModelsAreLoadedOnTheGpusAsConfigured) {
  EXPECT_EXIT(Run({"--slots_per_gpu=1"}), ExitedWithCode(3),
              "gpus 0,1 slots 1 deterministic 0 exact 0 plans 1");
  EXPECT_EXIT(Run({"--gpus=1", "--slots_per_gpu=4", "--deterministic"}),
              ExitedWithCode(3),
              "gpus 1 slots 4 deterministic 1 exact 0 plans 1");
  EXPECT_EXIT(Run({"--exact_gelu"}), ExitedWithCode(3), "exact 1");
  EXPECT_EXIT(Run({"--device=cpu"}), ExitedWithCode(3), "gpus  .*plans 0");
}

TEST_F(ServerMainDeathTest, SeveralContextsOfTheCpuDivideItsProcessors) {
  EXPECT_EXIT(Run({"--device=cpu", "--cpu_contexts=1"}), ExitedWithCode(3),
              "gpus  .*groups 0");
  if (!CheckContexts(AllowedTopology(), 2, 2).ok()) {
    GTEST_SKIP() << "this machine has one core";
  }
  EXPECT_EXIT(Run({"--device=cpu", "--cpu_contexts=2", "--compute_threads=2"}),
              ExitedWithCode(3), "gpus  .*groups 2");
  EXPECT_EXIT(Run({"--cpu_contexts=2", "--compute_threads=2"}),
              ExitedWithCode(3), "gpus 0,1 .*groups 0");
}

TEST_F(ServerMainDeathTest, ScansAreMeasuredOnTheFirstGpuForEachModel) {
  EXPECT_EXIT(Run({"--gpus=1", "--fold_table=table"}), ExitedWithCode(3),
              "tuner of 1 with table\n(.*\n)*plans for batches of 24\n");
  engine_.make_scan_tuner = [](int, const model::ScanTuner::Options&) {
    return absl::InvalidArgumentError("no valid table");
  };
  EXPECT_EXIT(Run({}), ExitedWithCode(3), "no valid table");
}

TEST_F(ServerMainDeathTest, OneThreadFeedsEachContextOfAGpu) {
  EXPECT_EXIT(Run({"--compute_threads=5"}), ExitedWithCode(3),
              "compute threads 1\n");
  EXPECT_EXIT(Run({"--compute_threads=5", "--device=cpu"}), ExitedWithCode(3),
              "compute threads 5\n");
}

TEST_F(ServerMainDeathTest, AGraphThatIsNotRecordedIsLogged) {
  EXPECT_EXIT(Run({}), ExitedWithCode(3),
              "a graph could not be recorded.*no graph today");
}

TEST_F(ServerMainDeathTest, ALoadThatOutlivesTheDrainIsLeft) {
  engine_.load = [](const model::ModelConfig&, absl::Span<const std::string>,
                    const model::ModelOptions&)
      -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
    kill(getpid(), SIGTERM);
    absl::SleepFor(absl::InfiniteDuration());
    return absl::InternalError("it never ends");
  };
  EXPECT_EXIT(Run({"--drain_delay=0s", "--drain_timeout=1ms"}),
              ExitedWithCode(6), "a load, a batch or an answer outlives");
}

TEST_F(ServerMainDeathTest, ADeviceThatFailsHasItsExitCode) {
  const auto gate = std::make_shared<Gate>();
  engine_.load = [gate](const model::ModelConfig& config,
                        absl::Span<const std::string>,
                        const model::ModelOptions&) {
    gate->BreakDevice();
    return std::make_unique<FakeModel>(config, gate.get());
  };
  EXPECT_EXIT(Run({}), ExitedWithCode(7), "a device has failed for good");
  // If a device has failed, the server does not wait for open calls and does
  // not free the device's memory. The process ends without running exit
  // handlers.
  const auto run = [this] {
    std::atexit([] { _exit(9); });
    Run({"--exit_on_load_error=false", "--drain_delay=1h"});
  };
  EXPECT_EXIT(run(), ExitedWithCode(7), "draining(.*\\n)*.*drained");
}

TEST_F(ServerMainDeathTest, RunsUntilASignalAndReleasesMemoryMeanwhile) {
  const auto gate = std::make_shared<Gate>();
  engine_.load = [gate](const model::ModelConfig& config,
                        absl::Span<const std::string>,
                        const model::ModelOptions&) {
    return std::make_unique<FakeModel>(config, gate.get());
  };
  for (const int number : {SIGTERM, SIGINT}) {
    engine_.release_memory = [number, released = false]() mutable {
      if (std::exchange(released, true)) return;
      Say("memory is released");
      kill(getpid(), number);
    };
    EXPECT_EXIT(Run({"--drain_delay=0s"}), ExitedWithCode(0),
                "memory is released\n(.*\n)*.*drained");
  }
}

TEST_F(ServerMainDeathTest, ASignalEndsItThoughNoModelHasLoaded) {
  engine_.release_memory = [killed = false]() mutable {
    if (!std::exchange(killed, true)) kill(getpid(), SIGTERM);
  };
  EXPECT_EXIT(Run({"--exit_on_load_error=false", "--drain_delay=0s"}),
              ExitedWithCode(0), "models did not load(.*\n)*.*drained");
}

TEST_F(ServerMainDeathTest, ASignalDuringALoadEndsItWithoutAnError) {
  engine_.load = [gate = std::make_shared<Gate>()](
                     const model::ModelConfig& config,
                     absl::Span<const std::string>,
                     const model::ModelOptions&) {
    kill(getpid(), SIGTERM);
    return std::make_unique<FakeModel>(config, gate.get());
  };
  EXPECT_EXIT(Run({"--drain_delay=0s"}), ExitedWithCode(0), "drained");
}

TEST_F(ServerMainDeathTest, ASecondSignalEndsItAtOnce) {
  engine_.load = [](const model::ModelConfig&, absl::Span<const std::string>,
                    const model::ModelOptions&)
      -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
    kill(getpid(), SIGTERM);
    sigset_t pending;
    do {
      absl::SleepFor(absl::Milliseconds(1));
      sigpending(&pending);
    } while (sigismember(&pending, SIGTERM) == 1);
    kill(getpid(), SIGTERM);
    absl::SleepFor(absl::InfiniteDuration());
    return absl::InternalError("it never ends");
  };
  EXPECT_EXIT(Run({"--drain_timeout=20s"}), ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(ServerMainDeathTest, ASignalEndsTheTuningAtOnce) {
  engine_.tune_scans =
      [](int, absl::Span<const model::ModelToTune>,
         const std::string&) -> absl::StatusOr<model::ScanMeasurement> {
    kill(getpid(), SIGTERM);
    return absl::InternalError("it went on");
  };
  EXPECT_EXIT(Run({"--tune", "--fold_table=table"}),
              testing::KilledBySignal(SIGTERM), "");
}

TEST_F(ServerMainDeathTest, AHangUpDrainsUnlessItIsIgnored) {
  engine_.load = [gate = std::make_shared<Gate>()](
                     const model::ModelConfig& config,
                     absl::Span<const std::string>,
                     const model::ModelOptions&) {
    return std::make_unique<FakeModel>(config, gate.get());
  };
  engine_.release_memory = [looks = 0]() mutable {
    kill(getpid(), SIGHUP);
    if (++looks != 2) return;
    Say("it still runs");
    kill(getpid(), SIGTERM);
  };
  const auto run = [this](void (*hang_up)(int)) {
    signal(SIGHUP, hang_up);
    Run({"--drain_delay=0s"});
  };
  EXPECT_EXIT(run(SIG_DFL), ExitedWithCode(0), "drained");
  EXPECT_EXIT(run(SIG_IGN), ExitedWithCode(0),
              "it still runs\n(.*\n)*.*drained");
}

// A supervisor may start the process without standard input and with a low
// limit of descriptors.
TEST_F(ServerMainDeathTest, TheProcessIsReadyForConnections) {
  engine_.load = [](const model::ModelConfig&, absl::Span<const std::string>,
                    const model::ModelOptions&)
      -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    Say(absl::StrCat("raised ", limit.rlim_cur == limit.rlim_max));
    const auto input = std::filesystem::read_symlink("/proc/self/fd/0");
    Say(absl::StrCat("input ", input.string()));
    for (const int number : {SIGPIPE, SIGXFSZ}) {
      struct sigaction action = {};
      sigaction(number, nullptr, &action);
      Say(absl::StrCat("ignored ", action.sa_handler == SIG_IGN));
    }
    return absl::InternalError("no model");
  };
  const auto run = [this] {
    close(STDIN_FILENO);
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &limit);
    Run({});
  };
  EXPECT_EXIT(run(), ExitedWithCode(3),
              "raised 1\n(.*\n)*input /dev/null\n(.*\n)*ignored 1\n(.*\n)*"
              "ignored 1\n");
}

TEST_F(ServerMainDeathTest, SaysWhatItIsAskedAndEnds) {
  engine_.build.version = "1.2.3";
  const std::string file = NewFolder("config") + "/server.textproto";
  std::ofstream(file) << "port: 77 decode_threads: 3";
  const auto run = [this](std::vector<std::string> flags) {
    std::fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    Run(std::move(flags));
  };
  EXPECT_EXIT(run({"--help"}), ExitedWithCode(0),
              "^sfmamba_server \\[flags\\]\n(.*\n)*  --port=N");
  EXPECT_EXIT(run({"--version"}), ExitedWithCode(0), "^sfmamba_server 1.2.3\n");
  EXPECT_EXIT(
      run({"--config=" + file, "--port=78", "--print_effective_config"}),
      ExitedWithCode(0), "port: 78\n(.*\n)*decode_threads: 3\n");
  EXPECT_EXIT(run({"--validate_config"}), ExitedWithCode(0), "^$");
  EXPECT_EXIT(run({"--config=/nonexistent"}), ExitedWithCode(2),
              "config: /nonexistent: got");
  engine_.check_environment = [] {
    return absl::InvalidArgumentError("wrong environment");
  };
  EXPECT_EXIT(run({"--validate_config"}), ExitedWithCode(2),
              "^wrong environment\n$");
}

TEST_F(ServerMainDeathTest, AWrongFlagIsNamed) {
  EXPECT_EXIT(Run({"--ports=1"}), ExitedWithCode(2),
              "--ports=1: there is no such flag, did you mean --port");
  EXPECT_EXIT(Run({"--port=65536"}), ExitedWithCode(2),
              "port: got 65536, expected 0 to 65535");
  // Protobuf parses the value. It must not write a second line.
  EXPECT_EXIT(Run({"--port=x"}), ExitedWithCode(2),
              "^--port: got \"x\"[^\n]*\n$");
}

TEST_F(ServerMainDeathTest, APortThatCannotBeBoundHasItsExitCode) {
  EXPECT_EXIT(Run({"--host=192.0.2.1"}), ExitedWithCode(4), "cannot start");
}

TEST_F(ServerMainDeathTest, TuningMeasuresAllModelsAndEnds) {
  WriteModel(repository_, "n", "1");
  EXPECT_EXIT(Run({"--tune", "--fold_table=table", "--gpus=1"}),
              ExitedWithCode(0),
              "tuned 2 on 1\n.*the fold table is written.*\"fold_table\":"
              "\"table\",\"gpu\":\"B\",\"scans\":7,\"measured\":5");
  EXPECT_EXIT(Run({"--tune", "--fold_table=unwritable"}), ExitedWithCode(7),
              "tuning failed.*no such disk");
  EXPECT_EXIT(Run({"--tune", "--fold_table=table", "--device=cpu"}),
              ExitedWithCode(5), "--tune needs a GPU");
}

TEST_F(ServerMainDeathTest, TuningNamesAModelThatCannotBeRead) {
  std::ofstream(repository_ + "/m/1/config.textproto") << "no configuration";
  EXPECT_EXIT(Run({"--tune", "--fold_table=table"}), ExitedWithCode(3),
              "the models cannot be read.*m/versions/1");
}

TEST_F(ServerMainDeathTest, GoldenAnswersNeedAModelThatLoads) {
  EXPECT_EXIT(Run({"--write_golden"}), ExitedWithCode(3),
              "golden answers cannot be written.*gpus 0,1");
}

}  // namespace
}  // namespace sfmamba::server
