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
#include "server/base/processors.h"
#include "server/base/sha256.h"
#include "server/rpc/grpc_threads.h"
#include "server/server.h"
#include "server/server_config.h"
#include "tests/testing/fake_context.h"

namespace sfmamba {
namespace {

constexpr int kClasses = 1000;
// Of the server that is full.
constexpr int kFullQueue = 8;

// Whether the model answers at once, or never.
using StandsStill = std::shared_ptr<std::atomic<bool>>;

class NullModel final : public model::VisionModel {
 public:
  NullModel(const model::ModelConfig& config, StandsStill stands_still)
      : config_(config), stands_still_(std::move(stands_still)) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "none"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          while (*stands_still_) pause();
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
  const StandsStill stands_still_;
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
      *server::FileSha256((folder / "model.safetensors").string()), "' }");
  return repository;
}

}  // namespace

void ServeNullModel(bool stands_still, const Listening& listening) {
  // As ServerMain does.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string repository = WriteModel(
      stands_still ? absl::StrCat("max_queue_items: ", kFullQueue) : "");
  // Not destroyed: the process is killed.
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
  // While it is loaded it answers: its answers are looked at.
  const auto still = std::make_shared<std::atomic<bool>>(false);
  options.load = [still](const repository::ModelDirectory& directory,
                         const auto&) {
    return std::make_unique<NullModel>(directory.config, still);
  };
  const rpc::GrpcThreads grpc_threads(
      {rpc::GrpcThreads::Enough(server::UsableProcessors())});
  auto server = server::Server::Start(options, log);
  if (!server.ok() || !(*server)->LoadModels().ok()) std::abort();
  *still = stands_still;
  std::filesystem::remove_all(repository);
  listening({(*server)->port(), (*server)->http_port()});
  while (true) pause();
}

}  // namespace sfmamba
