#include "server/repository/model_catalog.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "server/observability/metrics.h"

namespace sfmamba::repository {
namespace {

using model::VisionTask;

// Finds models, none of which is loaded, by their configurations alone.
class ModelCatalogTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / test->name();
    std::filesystem::remove_all(folder_);
  }

  void Add(const std::string& id, const std::string& config) {
    const std::filesystem::path folder = folder_ / id / "1";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.textproto") << config;
    catalog_.Add(id, 1, {folder.string(), ""});
  }

  // The id of what a request without a name gets, or the error's message.
  std::string Found(VisionTask task) {
    const auto found = catalog_.Find("", "model", task, Use::kPredict);
    return found.ok() ? (*found)->id() : std::string(found.status().message());
  }

  std::filesystem::path folder_;
  observability::Metrics metrics_{observability::BuildInfo()};
  ModelCatalog catalog_{&metrics_};
};

constexpr char kNames[] = "task: CLASSIFICATION";
constexpr char kNamesByDefault[] =
    "task: CLASSIFICATION default_for_task: true";

TEST_F(ModelCatalogTest, NoNameMeansTheOnlyModelOfTheTask) {
  Add("finder", "task: DETECTION");
  Add("namer", kNames);
  EXPECT_EQ(Found(VisionTask::kClassification), "namer");
  EXPECT_EQ(Found(VisionTask::kDetection), "finder");
  EXPECT_EQ(Found(VisionTask::kSegmentation),
            "got no name, expected one: there are 0 models for "
            "segmentation");
}

TEST_F(ModelCatalogTest, NoNameMeansTheDefaultOfSeveralModels) {
  Add("first", kNames);
  Add("second", kNamesByDefault);
  Add("third", kNames);
  Add("finder", "task: DETECTION default_for_task: true");
  EXPECT_EQ(Found(VisionTask::kClassification), "second");
  EXPECT_EQ(Found(VisionTask::kDetection), "finder");
}

TEST_F(ModelCatalogTest, NoNameMeansNoneOfSeveralDefaultsOrOfNone) {
  Add("first", kNames);
  Add("second", kNames);
  EXPECT_EQ(Found(VisionTask::kClassification),
            "got no name, expected one: there are 2 models for "
            "classification");
  Add("third", kNamesByDefault);
  Add("fourth", kNamesByDefault);
  EXPECT_EQ(Found(VisionTask::kClassification),
            "got no name, expected one: there are 4 models for "
            "classification, 2 of them default_for_task");
}

TEST_F(ModelCatalogTest, AConfigurationThatCannotBeReadIsForNoTask) {
  Add("broken", "task: CLASSIFICATION default_for_task: perhaps");
  Add("namer", kNames);
  Add("finder", "task: DETECTION");
  EXPECT_EQ(Found(VisionTask::kClassification), "namer");
}

}  // namespace
}  // namespace sfmamba::repository
