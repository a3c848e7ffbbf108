#include "server/scan_tuning.h"

#include <cstdio>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

class ScanTunerOptionsTest : public testing::Test {
 protected:
  ScanTunerOptionsTest()
      : file_(std::tmpfile(), &std::fclose),
        log_(file_.get(), observability::LogLevel::kInfo,
             observability::LogFormat::kText) {
    config_.set_fold_table("table");
    config_.mutable_tune_budget()->set_seconds(3);
  }

  // Returns everything logged so far.
  std::string Log() {
    EXPECT_TRUE(log_.Flush(kPatience));
    std::rewind(file_.get());
    std::string text(1 << 12, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_.get()));
    return text;
  }

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  observability::Logger log_;
  v1::ServerConfig config_;
};

TEST_F(ScanTunerOptionsTest, AreTheConfigurations) {
  const model::ScanTuner::Options options = ScanTunerOptions(config_, &log_);
  EXPECT_EQ(options.path, "table");
  EXPECT_EQ(options.budget, absl::Seconds(3));
  config_.mutable_tune_budget()->set_seconds(0);
  EXPECT_EQ(ScanTunerOptions(config_, &log_).budget, absl::ZeroDuration());
}

TEST_F(ScanTunerOptionsTest, DeterministicPlansAreNotMeasured) {
  config_.set_deterministic(true);
  EXPECT_EQ(ScanTunerOptions(config_, &log_).budget, absl::ZeroDuration());
}

TEST_F(ScanTunerOptionsTest, TheLogSaysWhatWasMeasuredAndWhatFailed) {
  const model::ScanTuner::Options options = ScanTunerOptions(config_, &log_);
  options.measured({/*unknown=*/7, /*measured=*/5, absl::Seconds(2)});
  EXPECT_NE(Log().find("scans are measured"), std::string::npos) << Log();
  EXPECT_NE(Log().find("unknown=7"), std::string::npos) << Log();
  options.failed(absl::InternalError("device lost"));
  EXPECT_NE(Log().find("device lost"), std::string::npos) << Log();
}

TEST(ModelsToTuneTest, AreThoseOfTheRepositoryWithTheirBatches) {
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "small", "1", "max_batch_size: 2");
  WriteModel(config.model_repository(), "wide", "1", "max_batch_size: 8");
  const absl::StatusOr<std::vector<model::ModelToTune>> models =
      ModelsToTune(config);
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 2);
  EXPECT_EQ(models->at(0).max_batch, 2);
  EXPECT_EQ(models->at(1).max_batch, 8);
}

TEST(ModelsToTuneTest, NamesTheModelThatCannotBeRead) {
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "broken", "1", "",
             model::VisionTask::kClassification, "num_classes: 3");
  const absl::Status status = ModelsToTune(config).status();
  EXPECT_NE(status.message().find("models/broken/versions/1"),
            std::string::npos)
      << status;
}

TEST(ModelsToTuneTest, NeedARepository) {
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models") + "/none");
  EXPECT_FALSE(ModelsToTune(config).ok());
}

}  // namespace
}  // namespace sfmamba::server
