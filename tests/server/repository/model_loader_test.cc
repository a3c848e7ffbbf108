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

// The measured maximum memory that loading a MambaVision model beside another
// one adds to a server, in fp32 with AMX.
TEST(MemoryToLoadTest, IsNoLessThanWasMeasured) {
  struct Case {
    int64_t file_bytes, elements, measured_mib;
  };
  // The comments at the ends of the lines name the variant and the format of
  // the weights.
  for (const Case& c : {Case{390'806'096, 97'700'000, 1194},  // B, fp32
                        Case{195'430'000, 97'700'000, 1001},  // B, fp16
                        Case{127'217'888, 31'800'000, 381},   // T, fp32
                        Case{63'630'000, 31'800'000, 316}}) {
    const int64_t estimate = MemoryToLoad(c.file_bytes, c.elements);
    EXPECT_GE(estimate, c.measured_mib << 20) << c.file_bytes;
    EXPECT_LE(estimate, (c.measured_mib << 20) * 4 / 3) << c.file_bytes;
  }
}

// A fake model on a CPU with BF16 and INT8. It calls `before` before each
// batch.
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

// A fake model that computes in `precision` and returns the logits 10 and
// `second`.
class ClassifyingModel : public server::FakeModel {
 public:
  ClassifyingModel(const model::ModelConfig& config, server::Gate* gate,
                   model::Precision precision, absl::StatusOr<float> second)
      : FakeModel(config, gate),
        precision_(precision),
        second_(std::move(second)) {}

  model::Precision precision() const override { return precision_; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          if (!second_.ok()) return second_.status();
          model::Classification answer;
          answer.logits.resize(kClasses);
          answer.logits[0] = 10;
          answer.logits[1] = *second_;
          return std::vector<model::Result>(images.size(), answer);
        });
  }

 private:
  const model::Precision precision_;
  const absl::StatusOr<float> second_;
};

using ModelLoaderTest = ModelReloadTest;

TEST_F(ModelLoaderTest, AutoIsBf16IfItIsFasterAndItsAnswersAreClose) {
  using model::Precision;
  constexpr Precision kBf16 = Precision::kBFloat16, kFp32 = Precision::kFloat32;
  constexpr int64_t kMuch = int64_t{1} << 40, kLittle = 100 << 20;
  struct Case {
    const char* name;
    // `computed` is the precision in which BF16 is really computed.
    Precision fast, computed;
    // The model's second logit in each precision.
    absl::StatusOr<float> reduced, full;
    int64_t free_memory;
    Precision chosen;
    const char* loads;  // The precisions that were loaded.
  };
  for (const Case& c : {
           Case{"close", kBf16, kBf16, 5.2f, 5, kMuch, kBf16, "bf"},
           Case{"fp32 is faster", kFp32, kBf16, 5, 5, kMuch, kFp32, "f"},
           Case{"no bf16", kBf16, kFp32, 5, 5, kMuch, kFp32, "b"},
           Case{"another class", kBf16, kBf16, 10.1f, 9.8f, kMuch, kFp32,
                "bff"},
           Case{"too far", kBf16, kBf16, 6, 5, kMuch, kFp32, "bff"},
           Case{"it fails", kBf16, kBf16, absl::InternalError("no kernel"), 5,
                kMuch, kFp32, "bf"},
           Case{"no memory for both", kBf16, kBf16, 5, 5, kLittle, kFp32, "bf"},
       }) {
    server::WriteModel(folder_, "m", "1", "",
                       model::VisionTask::kClassification, "precision: AUTO");
    options_.fast_precision = [&c] { return c.fast; };
    options_.free_memory = [&c] { return c.free_memory; };
    std::string loads;
    repository_ = std::make_unique<ModelRepository>(
        options_,
        [&](const ModelDirectory& directory,
            const ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          const bool reduced = directory.config.precision == kBf16;
          loads += reduced ? "b" : "f";
          return std::make_unique<ClassifyingModel>(
              directory.config, &gate_, reduced ? c.computed : kFp32,
              reduced ? c.reduced : c.full);
        },
        &metrics_, &log_);
    ASSERT_TRUE(repository_->Scan().ok());
    const absl::Status status =
        repository_->LoadAll([](const ModelVersion&) {}, [] { return false; });
    ASSERT_TRUE(status.ok()) << c.name << ": " << status;
    EXPECT_EQ((*(*repository_->Find("m", "model"))->Loaded())->precision,
              c.chosen)
        << c.name;
    EXPECT_EQ(loads, c.loads) << c.name;
  }
}

TEST_F(ModelLoaderTest, WhileOthersServeALowThreadPreparesAndComparesOnACpu) {
  options_.fast_precision = [] { return model::Precision::kBFloat16; };
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
}

TEST_F(ModelLoaderTest, AutoChoosesInt8WhereItMay) {
  options_.fast_precision = [] { return model::Precision::kBFloat16; };
  for (const auto& [config, expected] :
       {std::pair("precision: AUTO", model::Precision::kBFloat16),
        {"precision: AUTO allow_int8: true", model::Precision::kInt8}}) {
    server::WriteModel(folder_, "m", "1", "",
                       model::VisionTask::kClassification, config);
    repository_ = std::make_unique<ModelRepository>(
        options_,
        [&](const ModelDirectory& directory,
            const ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          return std::make_unique<CpuModel>(directory.config, &gate_, [] {});
        },
        &metrics_, &log_);
    ASSERT_TRUE(repository_->Scan().ok());
    ASSERT_TRUE(
        repository_->LoadAll([](const ModelVersion&) {}, [] { return false; })
            .ok());
    EXPECT_EQ((*(*repository_->Find("m", "model"))->Loaded())->precision,
              expected)
        << config;
  }
}

TEST_F(ModelLoaderTest, TheEndInterruptsWhatRunsToPrepareAModel) {
  options_.executor.profile_budget = absl::Hours(1);
  options_.fast_precision = [] { return model::Precision::kBFloat16; };
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
