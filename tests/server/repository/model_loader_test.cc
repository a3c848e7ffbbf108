#include "server/repository/model_loader.h"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "tests/server/repository/reload_fixture.h"
#include "tests/server/running_server.h"
#include "tests/testing/fake_context.h"

namespace sfmamba::repository {
namespace {

// What loading MambaVision beside another model added to the resident memory of
// a server at most, in fp32 with AMX.
TEST(MemoryToLoadTest, IsNoLessThanWasMeasured) {
  struct Case {
    int64_t file_bytes, elements, measured_mib;
  };
  for (const Case& c : {Case{390'806'096, 97'700'000, 1194},  // B, fp32
                        Case{195'430'000, 97'700'000, 1001},  // B, fp16
                        Case{127'217'888, 31'800'000, 381},   // T, fp32
                        Case{63'630'000, 31'800'000, 316}}) {
    const int64_t estimate = MemoryToLoad(c.file_bytes, c.elements);
    EXPECT_GE(estimate, c.measured_mib << 20) << c.file_bytes;
    EXPECT_LE(estimate, (c.measured_mib << 20) * 4 / 3) << c.file_bytes;
  }
}

// A fake model on a CPU that has BF16. Calls `before` before each batch.
class CpuModel : public server::FakeModel {
 public:
  CpuModel(const model::ModelConfig& config, server::Gate* gate,
           std::function<void()> before)
      : FakeModel(config, gate), before_(std::move(before)) {}

  std::string context_device(int /*index*/) const override { return "cpu"; }
  model::Precision precision() const override { return config().precision; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          before_();
          model::Classification answer;
          answer.logits.resize(kClasses);
          return std::vector<model::Result>(images.size(), answer);
        });
  }

 private:
  const std::function<void()> before_;
};

using ModelLoaderTest = ModelReloadTest;

TEST_F(ModelLoaderTest, WhileOthersServeALowThreadPreparesAndComparesOnACpu) {
  options_.profile_dir = folder_ + "-profiles";
  std::set<std::string> threads;
  absl::Mutex mu;
  std::set<std::thread::id> background;
  std::atomic<std::thread::id> loader;
  options_.background_starts = [&] {
    absl::MutexLock lock(&mu);
    background.insert(std::this_thread::get_id());
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), 10) << "lower than others'";
  };
  repository_ = std::make_unique<ModelRepository>(
      options_,
      [&](const ModelDirectory& directory,
          const ModelRepository::CaptureFailed&)
          -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
        loader = std::this_thread::get_id();
        return std::make_unique<CpuModel>(directory.config, &gate_, [&threads] {
          char name[16] = "";
          pthread_getname_np(pthread_self(), name, sizeof(name));
          threads.insert(name);
        });
      },
      &metrics_, &log_);
  ASSERT_TRUE(repository_->Scan().ok());
  ASSERT_TRUE(
      repository_->LoadAll([](const ModelVersion&) {}, [] { return false; })
          .ok());
  {
    absl::MutexLock lock(&mu);
    EXPECT_EQ(background.count(loader), 0) << "nothing serves yet";
  }
  threads.clear();
  server::WriteModel(folder_, "m", "2", "", model::VisionTask::kClassification,
                     "precision: AUTO");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ((*(*repository_->Find("m", "model"))->Loaded())->precision,
            model::Precision::kBFloat16);
  absl::MutexLock lock(&mu);
  EXPECT_EQ(background.count(loader), 1);
  EXPECT_EQ(threads.count("background"), 1);
  EXPECT_EQ(threads.count("loader"), 0) << "it would wait for others' batches";
  EXPECT_TRUE(std::filesystem::exists(options_.profile_dir + "/m-2.precision"));
}

TEST_F(ModelLoaderTest, TheEndInterruptsWhatRunsToPrepareAModel) {
  options_.executor.profile_budget = absl::Hours(1);
  for (const char* precision : {"", "precision: AUTO"}) {
    server::WriteModel(folder_, "m", "1", "",
                       model::VisionTask::kClassification, precision);
    std::atomic<int> batches{0};
    stop_ = false;
    repository_ = std::make_unique<ModelRepository>(
        options_,
        [&](const ModelDirectory& directory,
            const ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          return std::make_unique<CpuModel>(directory.config, &gate_, [&] {
            ++batches;
            stop_ = true;
          });
        },
        &metrics_, &log_);
    ASSERT_TRUE(repository_->Scan().ok());
    const absl::Status status = repository_->LoadAll(
        [](const ModelVersion&) {}, [this] { return stop_.load(); });
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_EQ(batches, 1) << precision;
  }
}

TEST_F(ModelLoaderTest, GraphsThatCannotBeRecordedAreCounted) {
  repository_ = std::make_unique<ModelRepository>(
      options_,
      [&](const ModelDirectory& directory,
          const ModelRepository::CaptureFailed& capture_failed)
          -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
        capture_failed(absl::InternalError("no graph"));
        return std::make_unique<server::FakeModel>(directory.config, &gate_);
      },
      &metrics_, &log_);
  ASSERT_TRUE(repository_->Scan().ok());
  ASSERT_TRUE(
      repository_->LoadAll([](const ModelVersion&) {}, [] { return false; })
          .ok());
  EXPECT_EQ(Metric("sfmamba_graph_capture_failures_total{model=m}"), 1);
}

TEST_F(ModelLoaderTest, AtTheStartOnlyTheWeightsMustFit) {
  const int64_t weights =
      std::filesystem::file_size(folder_ + "/m/1/model.safetensors");
  options_.free_memory = [weights] { return weights; };
  Start();
  server::WriteModel(folder_, "m", "2");
  EXPECT_FALSE(Load("m").ok()) << "beside others it takes more";
}

TEST_F(ModelLoaderTest, TheServersClientShareIsEachModels) {
  options_.executor.batch.client_share = 0.75;
  Start();
  const auto loaded = (*repository_->Find("m", "model"))->Loaded();
  EXPECT_EQ((*loaded)->executor->options().batch.client_share, 0.75);
}

}  // namespace
}  // namespace sfmamba::repository
