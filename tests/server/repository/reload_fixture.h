#ifndef SFMAMBA_TESTS_SERVER_REPOSITORY_RELOAD_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_REPOSITORY_RELOAD_FIXTURE_H_

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "server/errors/error.h"
#include "server/repository/model_repository.h"
#include "tests/server/observability/metric_values.h"
#include "tests/server/running_server.h"
#include "tests/testing/fake_context.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {

// A fake model whose logits are not finite.
class NanModel : public server::FakeModel {
 public:
  using FakeModel::FakeModel;

  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          model::Classification nan;
          nan.logits.assign(kClasses, std::numeric_limits<float>::quiet_NaN());
          return std::vector<model::Result>(images.size(), nan);
        });
  }
};

// A repository of fake models that changes while it serves. It starts with
// version 1 of "m".
class ModelReloadTest : public testing::Test {
 protected:
  ModelReloadTest()
      : folder_(server::NewFolder("models")),
        log_(stderr, observability::LogLevel::kError,
             observability::LogFormat::kText),
        metrics_(observability::BuildInfo{}) {
    server::WriteModel(folder_, "m", "1");
    options_.directory = folder_;
    options_.explicit_control = true;
  }

  // Writes the policy of model "m" by renaming, so that no reader sees a
  // partial file.
  void WritePolicy(const std::string& text) {
    const std::string path = folder_ + "/m/policy.textproto";
    std::ofstream(path + ".new") << text;
    std::filesystem::rename(path + ".new", path);
  }

  // Starts to serve the models in the folder.
  void Start() {
    repository_ = std::make_unique<ModelRepository>(
        options_,
        [this](const ModelDirectory& directory,
               const ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          ++loads_;
          asked_for_ = directory.config.precision;
          if (on_load_ != nullptr) on_load_();
          const std::string folder =
              std::filesystem::path(directory.weights_paths.front())
                  .parent_path()
                  .string();
          if (std::filesystem::exists(folder + "/unloadable")) {
            return absl::InvalidArgumentError("no such tensor");
          }
          if (std::filesystem::exists(folder + "/nan")) {
            return std::make_unique<NanModel>(directory.config, &gate_);
          }
          return std::make_unique<server::FakeModel>(directory.config, &gate_);
        },
        &metrics_, &log_);
    ASSERT_TRUE(repository_->Scan().ok());
    const absl::Status status =
        repository_->LoadAll([this](const ModelVersion&) { ++changes_; },
                             [this] { return stop_.load(); });
    ASSERT_TRUE(status.ok()) << status;
  }

  absl::Status Load(const std::string& id,
                    ModelRepository::LoadRequest request = {}) {
    return Call([&](const ModelRepository::Done& done) {
      repository_->LoadModel(id, request, done);
    });
  }
  absl::Status LoadVersion(const std::string& id, int64_t version) {
    return Load(id, {version, std::nullopt});
  }
  absl::Status Unload(const std::string& id,
                      std::optional<int64_t> version = std::nullopt) {
    return Call([&](const ModelRepository::Done& done) {
      repository_->UnloadModel(id, version, done);
    });
  }

  // Runs a call and returns its status.
  static absl::Status Call(
      absl::FunctionRef<void(const ModelRepository::Done&)> call) {
    absl::Status told;
    absl::Notification done;
    call([&](const absl::Status& status) {
      told = status;
      done.Notify();
    });
    WaitFor(done, "the end of a call");
    return told;
  }

  // Returns the states of model "m" in the form "1 READY".
  std::vector<std::string> States() {
    std::vector<std::string> states;
    for (const auto& version : repository_->List()) {
      if (version->id() != "m") continue;
      states.push_back(
          absl::StrCat(version->number(), " ",
                       observability::ModelStateName(version->state())));
    }
    return states;
  }
  void AwaitStates(const std::vector<std::string>& states) {
    WaitUntil([&] { return States() == states; },
              absl::StrCat("states of ", states.size(), " versions"));
  }

  int64_t Found(const std::string& name) {
    const auto version = repository_->Find(name, "model");
    return version.ok() ? (*version)->number() : 0;
  }

  static std::string Reason(const absl::Status& status) {
    return server::GetErrorDetail(status).reason;
  }
  double Metric(const std::string& series) {
    return observability::Values(metrics_)[series];
  }
  bool HasSeries(absl::string_view part) {
    for (const auto& [name, value] : observability::Values(metrics_)) {
      if (absl::StrContains(name, part)) return true;
    }
    return false;
  }

  // Runs one image with the model that `name` means now. Returns the model's
  // version, or an error.
  absl::StatusOr<int64_t> Predict(const std::string& name) {
    const auto version = repository_->Find(name, "model");
    if (!version.ok()) return version.status();
    const auto loaded = (*version)->Loaded();
    if (!loaded.ok()) return loaded.status();
    absl::Status answer;
    absl::Notification done;
    batching::BatchTask task;
    task.image.height = task.image.width = task.key.height = task.key.width =
        server::FakeModel::kSide;
    task.image.pixels =
        std::vector<uint8_t>(3 * task.image.height * task.image.width);
    task.done = [&](absl::StatusOr<model::Result> result,
                    const batching::BatchInfo&) {
      answer = result.status();
      done.Notify();
    };
    (*loaded)->executor->Submit(std::move(task));
    WaitFor(done, "an answer");
    if (!answer.ok()) return answer;
    return (*version)->number();
  }

  const std::string folder_;
  ModelRepository::Options options_;
  server::Gate gate_;
  std::atomic<int> loads_{0}, changes_{0};
  // The precision that the last load asked for.
  std::atomic<model::Precision> asked_for_{model::Precision::kFloat16};
  std::atomic<bool> stop_{false};
  std::function<void()> on_load_;
  observability::Logger log_;
  observability::Metrics metrics_;
  std::unique_ptr<ModelRepository> repository_;
};

}  // namespace sfmamba::repository

#endif  // SFMAMBA_TESTS_SERVER_REPOSITORY_RELOAD_FIXTURE_H_
