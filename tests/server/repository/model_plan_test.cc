#include "server/repository/model_plan.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

using Numbers = std::vector<int64_t>;

const absl::Time kNow = absl::UnixEpoch();
constexpr absl::Duration kPeriod = absl::Seconds(5);

// Returns a folder with these versions. All of their files are complete.
ModelFolder Folder(const std::map<int64_t, std::string>& fingerprints) {
  ModelFolder folder;
  for (const auto& [number, fingerprint] : fingerprints) {
    folder.versions[number] = {{"path", ""}, fingerprint, /*complete=*/true};
  }
  return folder;
}

v1::VersionPolicy Latest(int count) {
  v1::VersionPolicy policy;
  policy.set_latest(count);
  return policy;
}

Numbers ToLoad(const ModelPlan& plan, absl::Time now = kNow,
               bool at_once = false) {
  return plan.ToLoad({}, now, at_once);
}

TEST(ModelPlanTest, TellsWhichVersionsOfThePolicyAreMissing) {
  ModelPlan plan;
  ModelFolder folder = Folder({{1, "a"}, {2, "b"}});
  plan.Found(folder);
  EXPECT_EQ(plan.MissingVersions(), std::set<int64_t>());
  v1::VersionPolicy policy;
  for (const int64_t number : {9, 1, 7}) policy.add_specific(number);
  folder.policy = policy;
  plan.Found(folder, /*at_once=*/true);
  EXPECT_EQ(plan.MissingVersions(), (std::set<int64_t>{7, 9}));
  folder.versions.erase(1);
  plan.Found(folder);
  EXPECT_EQ(plan.MissingVersions(), (std::set<int64_t>{1, 7, 9}));
}

TEST(ModelPlanTest, LoadsTheNewestAndThenUnloadsTheOneBefore) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  plan.Loaded(1);
  EXPECT_EQ(ToLoad(plan), Numbers());
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  EXPECT_EQ(ToLoad(plan), Numbers({2}));
  EXPECT_EQ(plan.ToUnload({}), Numbers()) << "2 does not serve yet";
  plan.Loaded(2);
  EXPECT_EQ(plan.ToUnload({}), Numbers({1}));
  plan.Unloaded(1);
  EXPECT_EQ(plan.ToUnload({}), Numbers());
}

TEST(ModelPlanTest, TheOldVersionStaysWhileTheNewOneFails) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  plan.Loaded(1);
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  plan.Failed(2, kNow, kPeriod);
  EXPECT_EQ(plan.ToUnload({}), Numbers());
  // The old version stays even if its folder is removed.
  plan.Found(Folder({{2, "b"}}));
  EXPECT_EQ(plan.ToUnload({}), Numbers());
}

TEST(ModelPlanTest, TriesAgainLaterAndLater) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  absl::Time now = kNow;
  for (int periods : {1, 2, 4, 8, 16, 32, 64, 64}) {
    plan.Failed(1, now, kPeriod);
    EXPECT_EQ(ToLoad(plan, now + periods * kPeriod - absl::Nanoseconds(1)),
              Numbers())
        << periods;
    now += periods * kPeriod;
    EXPECT_EQ(ToLoad(plan, now), Numbers({1})) << periods;
  }
  EXPECT_EQ(ToLoad(plan, kNow, /*at_once=*/true), Numbers({1}));
}

TEST(ModelPlanTest, TriesAgainAtOnceWhenTheFilesChange) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  for (int i = 0; i < 5; ++i) plan.Failed(1, kNow, kPeriod);
  plan.Found(Folder({{1, "mended"}}));
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  plan.Failed(1, kNow, kPeriod);
  EXPECT_EQ(ToLoad(plan, kNow + kPeriod), Numbers({1}))
      << "failures of other files do not count";
}

TEST(ModelPlanTest, ALoadForgetsTheFailuresBefore) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  for (int i = 0; i < 5; ++i) plan.Failed(1, kNow, kPeriod);
  plan.Loaded(1);
  plan.Unloaded(1);
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  plan.Failed(1, kNow, kPeriod);
  EXPECT_EQ(ToLoad(plan, kNow + kPeriod), Numbers({1}));
}

TEST(ModelPlanTest, WaitsForWhatIsBeingWritten) {
  ModelPlan plan;
  const auto find = [&plan](const std::string& fingerprint, bool complete) {
    ModelFolder folder = Folder({{1, fingerprint}});
    folder.versions[1].complete = complete;
    plan.Found(std::move(folder));
  };
  find("1 byte", false);
  EXPECT_EQ(ToLoad(plan), Numbers());
  find("2 bytes", false);
  EXPECT_EQ(ToLoad(plan), Numbers());
  find("3 bytes", true);
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  // The incomplete version has not changed between two calls, so no process is
  // still writing it. It is loaded, and the load reports which files are
  // missing.
  find("1 byte again", false);
  find("1 byte again", false);
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  find("half", false);
  EXPECT_EQ(ToLoad(plan, kNow, /*at_once=*/true), Numbers({1}))
      << "a call does not wait";
}

TEST(ModelPlanTest, LoadsAVersionAgainWhoseFilesChanged) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  plan.Loaded(1);
  plan.Found(Folder({{1, "b"}}));
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  EXPECT_EQ(plan.ToUnload({}), Numbers());
  plan.Loaded(1);
  EXPECT_EQ(ToLoad(plan), Numbers());
}

TEST(ModelPlanTest, VersionsWithALabelStay) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  plan.Loaded(1);
  plan.Loaded(2);
  EXPECT_EQ(plan.ToUnload({1}), Numbers());
  EXPECT_EQ(plan.ToUnload({2}), Numbers({1}));
  plan.Found(Folder({{2, "b"}}));
  EXPECT_EQ(plan.ToUnload({1}), Numbers()) << "without a folder too";
}

TEST(ModelPlanTest, ACallWantsAnotherVersionBesideThePolicys) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  plan.Loaded(2);
  plan.Want(1);
  EXPECT_EQ(ToLoad(plan), Numbers({1}));
  plan.Loaded(1);
  EXPECT_EQ(plan.ToUnload({}), Numbers());
  plan.Drop(1);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2}));
  plan.Want();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2})) << "nor with the model";
  plan.Want(1);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1, 2})) << "again";
}

TEST(ModelPlanTest, WhatACallDroppedStaysAway) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  plan.Drop(2);
  EXPECT_TRUE(plan.IsDropped(2));
  EXPECT_FALSE(plan.IsDropped(1));
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1}));
  plan.Want();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2})) << "with the model";
  plan.Drop(2);
  plan.Drop();
  plan.Found(Folder({{1, "a"}, {2, "b"}, {3, "c"}}));
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>());
  plan.Want(1);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1})) << "and nothing else";
  plan.Want();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1, 3}));
  plan.Drop();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>()) << "what a call wanted, too";
}

TEST(ModelPlanTest, FollowsThePolicyAndKeepsItWhileItIsBroken) {
  ModelPlan plan;
  ModelFolder folder = Folder({{1, "a"}, {2, "b"}, {3, "c"}});
  folder.policy = Latest(2);
  plan.Found(folder);
  EXPECT_EQ(ToLoad(plan), Numbers({3, 2})) << "the newest first";
  folder.policy = absl::InvalidArgumentError("broken");
  plan.Found(folder);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2, 3}));
}

TEST(ModelPlanTest, FollowsANewPolicyOnceItIsFoundTwiceOrACallAsks) {
  ModelPlan plan;
  ModelFolder folder = Folder({{1, "a"}, {2, "b"}, {3, "c"}});
  folder.policy = Latest(3);
  plan.Found(folder);
  const std::set<int64_t> all = {1, 2, 3};
  EXPECT_EQ(plan.Wanted({}), all) << "nothing is lost by the first";
  ModelFolder truncated = folder;
  truncated.policy = v1::VersionPolicy();
  ModelFolder broken = folder;
  broken.policy = absl::InvalidArgumentError("broken");
  for (const ModelFolder& look : {truncated, folder, truncated, broken}) {
    plan.Found(look);
    EXPECT_EQ(plan.Wanted({}), all) << "it is being written";
  }
  folder.policy = Latest(2);
  plan.Found(truncated);
  plan.Found(folder);
  EXPECT_EQ(plan.Wanted({}), all);
  plan.Found(folder);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2, 3}));
  plan.Found(truncated, /*at_once=*/true);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({3}));
}

using Labels = std::map<std::string, std::optional<int64_t>>;

TEST(ModelPlanTest, SetsThePolicysLabelsOnceAndAgainWhenTheyChange) {
  ModelPlan plan;
  ModelFolder folder = Folder({{1, "a"}, {2, "b"}, {3, "c"}});
  folder.policy = v1::VersionPolicy();
  (*folder.policy->mutable_labels())["stable"] = 1;
  (*folder.policy->mutable_labels())["canary"] = 2;
  plan.Found(folder);
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1, 2, 3}));
  EXPECT_EQ(plan.labels_to_set(), Labels({{"stable", 1}, {"canary", 2}}));
  plan.LabelSet("stable");
  plan.LabelSet("canary");
  plan.Found(folder);
  EXPECT_EQ(plan.labels_to_set(), Labels()) << "calls may have moved them";

  (*folder.policy->mutable_labels())["stable"] = 2;
  folder.policy->mutable_labels()->erase("canary");
  plan.Found(folder, /*at_once=*/true);
  EXPECT_EQ(plan.labels_to_set(),
            Labels({{"stable", 2}, {"canary", std::nullopt}}));
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({2, 3}));
}

TEST(ModelPlanTest, ADroppedModelGetsThePolicysLabelsAgainOnceItIsWanted) {
  ModelPlan plan;
  ModelFolder folder = Folder({{1, "a"}, {2, "b"}});
  folder.policy = v1::VersionPolicy();
  (*folder.policy->mutable_labels())["stable"] = 1;
  plan.Found(folder);
  plan.LabelSet("stable");
  plan.Drop();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>());
  EXPECT_EQ(plan.labels_to_set(), Labels({{"stable", 1}}));
  plan.Want();
  EXPECT_EQ(plan.Wanted({}), std::set<int64_t>({1, 2}));
}

TEST(ModelPlanTest, ADroppedModelForgetsWhichVersionsWereDropped) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}, {2, "b"}}));
  plan.Drop(1);
  EXPECT_EQ(plan.Wanted({1}), std::set<int64_t>({2}));
  plan.Drop();
  EXPECT_EQ(plan.Wanted({1}), std::set<int64_t>({1})) << "it has a label";
}

TEST(ModelPlanTest, ForgetsWhatIsGone) {
  ModelPlan plan;
  plan.Found(Folder({{1, "a"}}));
  plan.Loaded(1);
  plan.Found(ModelFolder());
  plan.Found(ModelFolder());
  EXPECT_FALSE(plan.is_empty()) << "it is loaded";
  EXPECT_EQ(plan.ToUnload({}), Numbers({1}));
  plan.Unloaded(1);
  EXPECT_TRUE(plan.is_empty());
  EXPECT_EQ(plan.Folder(1), nullptr);
}

}  // namespace
}  // namespace sfmamba::repository
