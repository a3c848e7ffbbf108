#include "server/repository/model_catalog.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/observability/metrics.h"

namespace sfmamba::repository {
namespace {

using model::VisionTask;

// Finds models by their configurations, without loading them.
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

  // Returns the id of the model for a request without a name, or the error's
  // message.
  std::string Found(VisionTask task) {
    const auto found = catalog_.Find("", "model", task);
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

TEST_F(ModelCatalogTest, WhatIsNotFoundIsAnsweredWithWhatThereIs) {
  const auto error = [this](const std::string& name) {
    return std::string(
        catalog_.Find(name, "model", std::nullopt).status().message());
  };
  EXPECT_EQ(error("everyday"), "there is no model \"everyday\"");
  Add("everyday", kNames);
  Add("photographs", kNames);
  EXPECT_EQ(error("everydya"),
            "there is no model \"everydya\", did you mean \"everyday\"");
  EXPECT_EQ(error("models/everydya/versions/1"),
            "there is no model \"models/everydya/versions/1\", did you mean "
            "\"everyday\"");
  EXPECT_EQ(error("cats"),
            "there is no model \"cats\"; there are everyday, photographs");
  EXPECT_EQ(error("models/everyday/versions/7"),
            "there is no model \"models/everyday/versions/7\"; everyday has "
            "version 1");
  EXPECT_EQ(error("models/everyday/labels/stable"),
            "there is no model \"models/everyday/labels/stable\"; everyday has "
            "no labels");
  catalog_.Serve(catalog_.Get("everyday", 1), std::make_shared<LoadedModel>());
  ASSERT_TRUE(catalog_.SetLabel("everyday", "stable", 1).ok());
  EXPECT_EQ(error("models/everyday/labels/stabel"),
            "there is no model \"models/everyday/labels/stabel\", did you mean "
            "\"models/everyday/labels/stable\"");
  EXPECT_EQ(error("models/everyday/labels/x"),
            "there is no model \"models/everyday/labels/x\"; everyday has "
            "label stable");
  for (int i = 0; i < 20; ++i) Add(absl::StrCat("number_", i, i, i), kNames);
  EXPECT_EQ(error("cats"), "there is no model \"cats\"") << "too many";
}

TEST_F(ModelCatalogTest, AModelHasAtMost64Labels) {
  Add("m", kNames);
  catalog_.Serve(catalog_.Get("m", 1), std::make_shared<LoadedModel>());
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(catalog_.SetLabel("m", absl::StrCat("l", i), 1).ok());
  }
  const absl::Status status = catalog_.SetLabel("m", "stable", 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "models/m: got 65 labels, expected at most 64; remove one first");
  EXPECT_TRUE(catalog_.SetLabel("m", "l7", 1).ok()) << "it has this one";
  ASSERT_TRUE(catalog_.SetLabel("m", "l7", std::nullopt).ok());
  EXPECT_TRUE(catalog_.SetLabel("m", "stable", 1).ok());
}

TEST_F(ModelCatalogTest, AModelThatIsReplacedIsAwaited) {
  Add("m", kNames);
  const ModelCatalog::Version first = catalog_.Get("m", 1);
  const auto old = std::make_shared<LoadedModel>();
  catalog_.Serve(first, old);
  EXPECT_TRUE(catalog_.AwaitFreed(absl::ZeroDuration()));
  catalog_.Serve(catalog_.Make("m", 1, first->path()),
                 std::make_shared<LoadedModel>());
  EXPECT_FALSE(catalog_.AwaitFreed(absl::ZeroDuration()));
  catalog_.Freed(old.get());
  EXPECT_TRUE(catalog_.AwaitFreed(absl::ZeroDuration()));
  EXPECT_TRUE(catalog_.IsServing("m")) << "the new one stays in the list";
}

TEST_F(ModelCatalogTest, AVersionIsUnavailableForTheLastReasonOfItsOwn) {
  std::map<std::string, std::shared_ptr<LoadedModel>> models;
  for (const char* id : {"m", "other"}) {
    Add(id, kNames);
    models[id] = std::make_shared<LoadedModel>();
    catalog_.Serve(catalog_.Get(id, 1), models[id]);
    ASSERT_TRUE(catalog_.Unload(id, 1, "a reason").ok());
  }
  EXPECT_EQ(catalog_.Get("m", 1)->state(),
            observability::ModelState::kUnloading);
  ASSERT_TRUE(catalog_.Unload("m", 1, "another").ok());
  for (const auto& [id, model] : models) catalog_.Freed(model.get());
  EXPECT_EQ(catalog_.Get("m", 1)->state_reason(), "another");
  EXPECT_EQ(catalog_.Get("other", 1)->state_reason(), "a reason");
}

TEST_F(ModelCatalogTest, AConfigurationThatCannotBeReadIsForNoTask) {
  Add("broken", "task: CLASSIFICATION default_for_task: perhaps");
  Add("namer", kNames);
  Add("finder", "task: DETECTION");
  EXPECT_EQ(Found(VisionTask::kClassification), "namer");
}

TEST_F(ModelCatalogTest, AfterClearItHasNone) {
  Add("first", kNames);
  EXPECT_EQ(Found(VisionTask::kClassification), "first");
  catalog_.Clear();
  EXPECT_EQ(Found(VisionTask::kClassification),
            "got no name, expected one: there are 0 models for "
            "classification");
}

}  // namespace
}  // namespace sfmamba::repository
