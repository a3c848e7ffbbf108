#include "tests/server/ceiling/null_server.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/host/processors.h"
#include "server/server.h"
#include "server/server_config.h"
#include "server/settings/sha256.h"
#include "tests/testing/fake_context.h"

namespace sfmamba {
namespace {

constexpr int kClasses = 1000;
// The maximum number of queued images if batches never end. The queue is then
// soon full.
constexpr int kFullQueue = 8;

// True when the model is loaded. The server also runs batches while it loads
// the model. If the batch time is infinite, these batches are answered at once,
// because the server waits for the answers and checks them. If the batch time
// is finite, these batches take the batch time, because the server measures it.
using Loaded = std::shared_ptr<std::atomic<bool>>;

class NullModel final : public model::VisionModel {
 public:
  NullModel(const model::ModelConfig& config, absl::Duration batch_time,
            Loaded loaded)
      : config_(config), batch_time_(batch_time), loaded_(std::move(loaded)) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "none"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          const bool ends = batch_time_ < absl::InfiniteDuration();
          if (ends || *loaded_) absl::SleepFor(batch_time_);
          model::Classification answer;
          answer.logits.resize(kClasses);
          return std::vector<model::Result>(images.size(), answer);
        });
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return "none"; }
  absl::Status health() const override { return absl::OkStatus(); }
  int fold_factor(int /*images*/) const override { return 1; }

 private:
  const model::ModelConfig config_;
  const absl::Duration batch_time_;
  const Loaded loaded_;
};

std::string WriteModel(const std::string& batching) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "ceiling.XXXXXX").string();
  const std::string repository = mkdtemp(pattern.data());
  const std::filesystem::path folder = repository + "/null/1";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.safetensors") << "none";
  std::ofstream labels(folder / "labels.txt");
  for (int i = 0; i < kClasses; ++i) labels << "label " << i << "\n";
  std::ofstream(folder / "config.textproto") << absl::StrCat(
      R"(backbone { variant: "custom" dim: 16 in_dim: 8 depths: [1, 1, 5, 3]
         num_heads: [1, 2, 4, 8] windows: [4, 2] layer_scale: true } )",
      "input { size: ", kNullModelSide, " } batching { ", batching,
      " } weights { size_bytes: 4 sha256: '",
      *server::FilesSha256({(folder / "model.safetensors").string()}), "' }");
  return repository;
}

}  // namespace

void ServeNullModel(absl::Duration batch_time, const Listening& listening) {
  // ServerMain sets this mode too.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string repository =
      WriteModel(batch_time == absl::InfiniteDuration()
                     ? absl::StrCat("max_queue_items: ", kFullQueue)
                     : "");
  // The logger is never destroyed, because the process is killed.
  auto* log = new observability::Logger(std::fopen("/dev/null", "w"),
                                        observability::LogLevel::kInfo,
                                        observability::LogFormat::kJson);
  server::Server::Options options;
  v1::ServerConfig config;
  config.set_model_repository(repository);
  config.set_port(0);
  config.set_metrics_port(0);
  config.set_http_port(0);
  config.set_decode_threads(server::UsableProcessors());
  options.config = server::WithDefaults(config);
  options.build.version = "benchmark";
  const auto loaded = std::make_shared<std::atomic<bool>>(false);
  options.load = [batch_time, loaded](
                     const repository::ModelDirectory& directory, const auto&) {
    return std::make_unique<NullModel>(directory.config, batch_time, loaded);
  };
  auto server = server::Server::Start(options, log);
  if (!server.ok() || !(*server)->LoadModels().ok()) std::abort();
  *loaded = true;
  std::filesystem::remove_all(repository);
  listening({(*server)->port(), (*server)->http_port()});
  while (true) pause();
}

}  // namespace sfmamba
