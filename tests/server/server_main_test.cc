// What the command asks of its engine on GPUs, which need not exist here.
#include "server/server_main.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
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
#include "tests/server/fake_model.h"
#include "tests/server/listeners.h"
#include "tests/server/running_server.h"

namespace sfmamba::server {
namespace {

using testing::ExitedWithCode;

// Writes a line in one piece: other threads write to the log beside it.
void Say(const std::string& line) { std::cerr << line + "\n"; }

// Says which model it is asked about, and has an empty table.
class FakeTuner : public model::ScanTuner {
 public:
  std::shared_ptr<const tuning::ScanPlanTable> PlansFor(
      const model::ModelToTune& model) override {
    Say(absl::StrCat("plans for batches of ", model.max_batch));
    return std::make_shared<tuning::ScanPlanTable>(tuning::ScanDevice{});
  }
};

// The command with two GPUs, whose models tell their options and do not load.
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
                       " plans ", options.scan_plans != nullptr));
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

  // Ends this process with the command's exit code.
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

TEST_F(ServerMainDeathTest, ADeviceAndAPortThatFailHaveTheirExitCodes) {
  const auto gate = std::make_shared<Gate>();
  engine_.load = [gate](const model::ModelConfig& config,
                        absl::Span<const std::string>,
                        const model::ModelOptions&) {
    gate->BreakDevice();
    return std::make_unique<FakeModel>(config, gate.get());
  };
  EXPECT_EXIT(Run({}), ExitedWithCode(7), "a device has failed for good");
  engine_.load = [gate](const model::ModelConfig& config,
                        absl::Span<const std::string>,
                        const model::ModelOptions&) {
    ShutListeners();
    return std::make_unique<FakeModel>(config, gate.get());
  };
  EXPECT_EXIT(Run({"--self_check_period=1ms", "--drain_delay=0s"}),
              ExitedWithCode(8), "the gRPC port takes no new connections");
}

TEST_F(ServerMainDeathTest, RunsUntilASignalAndReleasesMemoryMeanwhile) {
  const auto gate = std::make_shared<Gate>();
  engine_.load = [gate](const model::ModelConfig& config,
                        absl::Span<const std::string>,
                        const model::ModelOptions&) {
    return std::make_unique<FakeModel>(config, gate.get());
  };
  engine_.release_memory = [released = false]() mutable {
    if (std::exchange(released, true)) return;
    Say("memory is released");
    kill(getpid(), SIGTERM);
  };
  EXPECT_EXIT(Run({"--drain_delay=0s"}), ExitedWithCode(0),
              "memory is released\n(.*\n)*.*drained");
}

TEST_F(ServerMainDeathTest, AWrongFlagIsNamed) {
  EXPECT_EXIT(Run({"--ports=1"}), ExitedWithCode(2),
              "--ports=1: there is no such flag, did you mean --port");
  EXPECT_EXIT(Run({"--port=65536"}), ExitedWithCode(2),
              "port: got 65536, expected 0 to 65535");
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
