#include "server/model_scans.h"

#include "gtest/gtest.h"
#include "tests/server/running_server.h"

namespace sfmamba::server {
namespace {

TEST(ScansOfTest, HasEachScanOfEachModelOnce) {
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "small", "1", "max_batch_size: 2");
  const absl::StatusOr<std::vector<tuning::ScanShape>> one = ScansOf(config);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_FALSE(one->empty());
  WriteModel(config.model_repository(), "twin", "1", "max_batch_size: 2");
  EXPECT_EQ(ScansOf(config)->size(), one->size());
  WriteModel(config.model_repository(), "larger", "1", "max_batch_size: 8");
  EXPECT_GT(ScansOf(config)->size(), one->size());
}

TEST(ScansOfTest, NamesTheModelThatCannotBeRead) {
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "broken", "1", "",
             model::VisionTask::kClassification, "num_classes: 3");
  const absl::Status status = ScansOf(config).status();
  EXPECT_NE(status.message().find("models/broken/versions/1"),
            std::string::npos)
      << status;
}

}  // namespace
}  // namespace sfmamba::server
