#include "server/repository/model_entry.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/observability/metrics.h"

namespace sfmamba::repository {
namespace {

class ModelEntryTest : public testing::Test {
 protected:
  void Put(int64_t number, bool ready) {
    auto version = std::make_shared<ModelVersion>(
        "m", number, VersionPath{"path", ""}, std::nullopt,
        metrics_.Model("m", std::to_string(number)));
    if (ready) version->SetReady(std::make_shared<LoadedModel>());
    entry_.Put(std::move(version));
  }

  int64_t Default() const { return entry_.Default()->number(); }

  observability::Metrics metrics_{observability::BuildInfo{}};
  ModelEntry entry_;
};

TEST_F(ModelEntryTest, MeansTheHighestThatIsReady) {
  EXPECT_EQ(entry_.Default(), nullptr);
  Put(1, false);
  Put(2, false);
  EXPECT_EQ(Default(), 2);
  Put(1, true);
  EXPECT_EQ(Default(), 1);
  Put(2, true);
  EXPECT_EQ(Default(), 2);
}

TEST_F(ModelEntryTest, MeansTheStableVersionIfOneIs) {
  Put(1, true);
  Put(2, true);
  entry_.SetLabel(kStableLabel, 1);
  EXPECT_EQ(Default(), 1);
  EXPECT_EQ(entry_.Find(1)->labels(), std::vector<std::string>{kStableLabel});
  entry_.SetLabel(kStableLabel, 2);
  EXPECT_EQ(Default(), 2);
  EXPECT_TRUE(entry_.Find(1)->labels().empty());
  entry_.SetLabel(kStableLabel, std::nullopt);
  entry_.SetLabel(kStableLabel, std::nullopt);
  EXPECT_TRUE(entry_.labelled().empty());
  EXPECT_TRUE(entry_.Find(2)->labels().empty());
}

TEST_F(ModelEntryTest, TheCanaryIsNotMeantAsLongAsAnotherIsReady) {
  Put(1, true);
  Put(2, true);
  entry_.SetLabel(kCanaryLabel, 2);
  EXPECT_EQ(Default(), 1);
  Put(1, false);
  EXPECT_EQ(Default(), 2);
  Put(1, true);
  entry_.SetLabel(kCanaryLabel, std::nullopt);
  EXPECT_EQ(Default(), 2) << "the highest, without a label";
}

TEST_F(ModelEntryTest, LabelsGoWithTheirVersionAndStayOverALoad) {
  Put(1, true);
  entry_.SetLabel("a", 1);
  entry_.SetLabel("b", 1);
  Put(1, true);
  EXPECT_EQ(entry_.Find(1)->labels(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(entry_.FindLabelled("b"), entry_.Find(1));
  EXPECT_EQ(entry_.FindLabelled("c"), nullptr);
  entry_.Remove(1);
  EXPECT_TRUE(entry_.labelled().empty());
  Put(1, true);
  entry_.SetLabel("a", 1);
  entry_.ClearLabels();
  EXPECT_EQ(entry_.FindLabelled("a"), nullptr);
}

}  // namespace
}  // namespace sfmamba::repository
