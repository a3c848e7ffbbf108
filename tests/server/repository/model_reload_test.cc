// Tests calls that change the models of a running repository.

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/repository/golden.h"
#include "tests/server/repository/reload_fixture.h"
#include "tests/server/running_server.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;
using observability::ModelState;
using server::WriteModel;

TEST_F(ModelReloadTest, ACallLoadsTheNewVersionAndUnloadsTheOldOne) {
  Start();
  WriteModel(folder_, "m", "2");
  const int changes = changes_;
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("m"), 2);
  AwaitStates({"2 READY"});
  EXPECT_GE(changes_ - changes, 2);
  EXPECT_TRUE(repository_->IsServing("m"));
  EXPECT_EQ(Metric("sfmamba_model_reloads_total{model=m,result=ok}"), 1);
  EXPECT_EQ(Metric("sfmamba_model_state{model=m,state=READY,version=2}"), 1);
  WaitUntil([this] { return !HasSeries("version=1"); },
            "the end of version 1's series");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(loads_, 2) << "nothing has changed";
}

TEST_F(ModelReloadTest, AVersionOfAKnownNetworkIsNotMeasured) {
  options_.executor.profile_budget = absl::Hours(1);
  WriteModel(folder_, "m", "1", "max_batch_size: 1");
  WriteModel(folder_, "n", "1", "max_batch_size: 4");
  WriteModel(folder_, "with_other_weights", "1", "max_batch_size: 4");
  Start();
  const auto times = [this](const std::string& name) {
    return (*(*repository_->Find(name, "model"))->Loaded())->executor->Times();
  };
  ASSERT_EQ(times("m").size(), 1);
  EXPECT_EQ(times("n").size(), 1) << "it was measured";
  EXPECT_EQ(times("with_other_weights").size(), 3);
  const absl::Duration before = times("m")[0].median;
  WriteModel(folder_, "m", "2", "max_batch_size: 4");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("m"), 2);
  ASSERT_EQ(times("m").size(), 1) << "version 2 was measured";
  EXPECT_EQ(times("m")[0].median, before);
}

TEST_F(ModelReloadTest, TheServersPrecisionIsForModelsThatHaveNone) {
  using model::Precision;
  options_.default_precision = v1::AUTO;
  options_.fast_precision = [] { return Precision::kBFloat16; };
  Start();
  EXPECT_EQ(asked_for_, Precision::kBFloat16);
  EXPECT_EQ(loads_, 1) << "the fake has no BF16, so nothing is checked";
  EXPECT_EQ((*(*repository_->Find("m", "model"))->Loaded())->precision,
            Precision::kFloat32);
  const std::vector<std::pair<std::string, Precision>> stated = {
      {"FP32", Precision::kFloat32},
      {"FP16", Precision::kFloat16},
      {"AUTO", Precision::kBFloat16}};
  for (const auto& [precision, asked] : stated) {
    WriteModel(folder_, precision, "1", "", model::VisionTask::kClassification,
               "precision: " + precision);
    EXPECT_EQ(Load(precision), absl::OkStatus());
    EXPECT_EQ(asked_for_, asked) << precision;
  }
}

TEST_F(ModelReloadTest, CallsAreRefusedWithoutExplicitControl) {
  options_.explicit_control = false;
  Start();
  for (const absl::Status& status : {Load("m"), Unload("m"), Load("other")}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(Reason(status), "MODEL_CONTROL_OFF");
  }
  EXPECT_EQ(Found("m"), 1);
}

TEST_F(ModelReloadTest, WhatIsNotThereIsNotFound) {
  Start();
  WriteModel(folder_, "m", "03");
  for (const absl::Status& status :
       {Load("other"), Load("../models/m"), LoadVersion("m", 2),
        LoadVersion("m", 3), LoadVersion("m", -1), Unload("other"),
        Unload("m", 2), repository_->SetLabel("m", "stable", 2),
        repository_->SetLabel("other", "stable", 1)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
  }
  EXPECT_EQ(Found("m"), 1);
}

TEST_F(ModelReloadTest, AFailedLoadLeavesTheOldVersion) {
  Start();
  WriteModel(folder_, "m", "2");
  std::ofstream(folder_ + "/m/2/unloadable") << "";
  const absl::Status status = Load("m");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(status), "LOAD_FAILED");
  EXPECT_EQ(status.message(), "models/m/versions/2: no such tensor");
  EXPECT_EQ(States(), (std::vector<std::string>{"1 READY", "2 UNAVAILABLE"}));
  EXPECT_EQ(
      (*repository_->Find("models/m/versions/2", "model"))->state_reason(),
      "no such tensor");
  EXPECT_EQ(*Predict("m"), 1);
  EXPECT_EQ(Metric("sfmamba_model_reloads_total{model=m,result=error}"), 1);
  EXPECT_EQ(Metric("sfmamba_model_state{model=m,state=UNAVAILABLE,version=2}"),
            1);
  const std::string loads = "sfmamba_model_load_duration_seconds{model=m,";
  EXPECT_EQ(Metric(loads + "result=ok,version=1}"), 1);
  EXPECT_EQ(Metric(loads + "result=error,version=2}"), 1);
  fs::remove(folder_ + "/m/2/unloadable");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  AwaitStates({"2 READY"});
  EXPECT_EQ((*repository_->Find("m", "model"))->state_reason(), "");
}

TEST_F(ModelReloadTest, AVersionThatFailsToLoadAgainServesOn) {
  Start();
  std::ofstream(folder_ + "/m/1/labels.txt") << "one\n\ntwo\n";
  EXPECT_EQ(Reason(Load("m")), "LOAD_FAILED");
  const auto version = repository_->Find("m", "model");
  EXPECT_EQ((*version)->state(), ModelState::kReady);
  EXPECT_NE((*version)->state_reason(), "");
  EXPECT_EQ(*Predict("m"), 1);
  EXPECT_EQ(Metric("sfmamba_model_state{model=m,state=READY,version=1}"), 1);
  WriteModel(folder_, "m", "1");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ((*repository_->Find("m", "model"))->state_reason(), "");
}

TEST_F(ModelReloadTest, ValuesThatAreNotFiniteDoNotServe) {
  Start();
  WriteModel(folder_, "m", "2");
  std::ofstream(folder_ + "/m/2/nan") << "";
  EXPECT_NE(Load("m").message().find("not finite"), std::string::npos);
  EXPECT_EQ(*Predict("m"), 1);
}

TEST_F(ModelReloadTest, AnswersThatAreNotTheStoredOnesDoNotServe) {
  Start();
  WriteModel(folder_, "m", "2");
  GoldenImage image;
  image.height = image.width = server::FakeModel::kSide;
  image.pixels.assign(3 * image.height * image.width, 255);
  model::Classification wrong;
  wrong.logits = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  image.result = wrong;
  ASSERT_TRUE(WriteGolden(folder_ + "/m/2", {image}).ok());
  const absl::Status status = Load("m");
  EXPECT_NE(status.message().find("golden image 0: "), std::string::npos)
      << status;
  EXPECT_EQ(*Predict("m"), 1);
}

TEST_F(ModelReloadTest, ACallMayChangeTheLimitsOfBatches) {
  Start();
  v1::Batching batching;
  batching.set_max_batch_size(3);
  EXPECT_EQ(Load("m", {std::nullopt, batching}), absl::OkStatus());
  const auto loaded = (*repository_->Find("m", "model"))->Loaded();
  EXPECT_EQ((*loaded)->directory.batch.max_batch_size, 3);
  batching.set_max_batch_size(-1);
  const absl::Status status = Load("m", {std::nullopt, batching});
  EXPECT_NE(status.message().find("batching.max_batch_size"), std::string::npos)
      << status;
  EXPECT_EQ(*Predict("m"), 1);
}

TEST_F(ModelReloadTest, AnUnloadedModelStaysAwayUntilACallLoadsIt) {
  WriteModel(folder_, "other", "1");
  Start();
  EXPECT_EQ(Unload("m"), absl::OkStatus());
  EXPECT_EQ(Reason(Predict("m").status()), "MODEL_NOT_READY");
  EXPECT_EQ(*Predict("other"), 1);
  EXPECT_FALSE(repository_->IsServing("m"));
  AwaitStates({"1 UNAVAILABLE"});
  EXPECT_FALSE(HasSeries("model=m,version"));
  EXPECT_FALSE(HasSeries("model=m,state"));
  EXPECT_EQ(Unload("m"), absl::OkStatus()) << "once more";
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(*Predict("m"), 1);
  EXPECT_EQ(States(), std::vector<std::string>{"1 READY"});
}

TEST_F(ModelReloadTest, OnlyTheModelsOfTheStartAreLoaded) {
  WriteModel(folder_, "other", "1");
  options_.startup_models = {"other"};
  Start();
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(States(), std::vector<std::string>{"1 UNAVAILABLE"});
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(*Predict("m"), 1);
  options_.startup_models = {"none"};
  repository_ =
      std::make_unique<ModelRepository>(options_, nullptr, &metrics_, &log_);
  EXPECT_EQ(repository_->Scan().code(), absl::StatusCode::kNotFound);
}

// The old version's remaining batches must not wait behind the new version's.
// See DeviceTurns::Join().
TEST_F(ModelReloadTest, TheVersionsOfAModelShareItsTurnsOnADevice) {
  WriteModel(folder_, "m", "2");
  WriteModel(folder_, "other", "1");
  WritePolicy("all: true");
  Start();
  const auto options_of = [this](const std::string& name) {
    const auto version = repository_->Find(name, "model");
    return (*(*version)->Loaded())->executor->options();
  };
  const auto model_of = [&options_of](const std::string& name) {
    return options_of(name).batch.model;
  };
  EXPECT_EQ(options_of("models/m/versions/1").name, "m");
  EXPECT_EQ(options_of("models/m/versions/1").version, "1");
  EXPECT_EQ(model_of("models/m/versions/1"), "m");
  EXPECT_EQ(model_of("models/m/versions/2"), "m");
  EXPECT_EQ(model_of("other"), "other");
}

// ---- Labels ----

TEST_F(ModelReloadTest, RollsOutAndBackByLabels) {
  Start();
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 1).ok());
  WriteModel(folder_, "m", "2");
  ASSERT_TRUE(Load("m").ok());
  EXPECT_EQ(Found("m"), 1) << "what is labelled is kept";
  EXPECT_EQ(Found("models/m/labels/stable"), 1);
  ASSERT_TRUE(repository_->SetLabel("m", "canary", 2).ok());
  EXPECT_EQ(*Predict("m"), 1);
  EXPECT_EQ(*Predict("models/m/labels/canary"), 2);
  EXPECT_EQ(Reason(Unload("m", 1)), "VERSION_IN_USE");
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 2).ok());
  EXPECT_EQ(Found("m"), 2);
  ASSERT_TRUE(Load("m").ok());
  AwaitStates({"2 READY"});
  // The test rolls back to version 1.
  ASSERT_TRUE(LoadVersion("m", 1).ok());
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 1).ok());
  ASSERT_TRUE(repository_->SetLabel("m", "canary", std::nullopt).ok());
  EXPECT_EQ(Found("m"), 1);
  ASSERT_TRUE(Unload("m", 2).ok());
  AwaitStates({"1 READY", "2 UNAVAILABLE"});
  EXPECT_EQ(Found("m"), 1);
}

TEST_F(ModelReloadTest, ALabelNeedsAGoodNameAndAVersionThatIsReady) {
  Start();
  WriteModel(folder_, "m", "2");
  std::ofstream(folder_ + "/m/2/unloadable") << "";
  Load("m").IgnoreError();
  EXPECT_EQ(Reason(repository_->SetLabel("m", "stable", 2)), "MODEL_NOT_READY");
  for (const char* label : {"", "a/b", ".x", "a b"}) {
    const absl::Status status = repository_->SetLabel("m", label, 1);
    EXPECT_EQ(server::GetErrorDetail(status).field, "label") << label;
  }
  EXPECT_EQ(Found("models/m/labels/stable"), 0);
}

TEST_F(ModelReloadTest, ThePolicysFileGivesLabelsThatSurviveARestart) {
  WriteModel(folder_, "m", "2");
  WritePolicy(
      "labels { key: 'stable' value: 1 } labels { key: 'canary' value: 2 } "
      "labels { key: 'next' value: 3 }");
  Start();
  EXPECT_EQ(Found("m"), 1);
  EXPECT_EQ(Found("models/m/labels/canary"), 2);
  EXPECT_FALSE(repository_->Find("models/m/labels/next", "model").ok());

  // A label that was set by a call stays until the entry of this label in
  // policy.textproto changes.
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 2).ok());
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("m"), 2);
  WriteModel(folder_, "m", "3");
  WritePolicy(
      "labels { key: 'stable' value: 1 } labels { key: 'next' value: 3 }");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("m"), 2) << "the file says of stable what it said before";
  EXPECT_EQ(Found("models/m/labels/next"), 3);
  EXPECT_FALSE(repository_->Find("models/m/labels/canary", "model").ok());
  WritePolicy("labels { key: 'stable' value: 3 }");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("m"), 3);
  AwaitStates({"3 READY"});

  EXPECT_EQ(Unload("m"), absl::OkStatus());
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(Found("models/m/labels/stable"), 3);
}

TEST_F(ModelReloadTest, ALabelIsSetBeforeTheNextVersionLoads) {
  WriteModel(folder_, "m", "2");
  WritePolicy(
      "labels { key: 'stable' value: 2 } labels { key: 'old' value: 1 }");
  std::vector<int64_t> found;
  on_load_ = [&] { found.push_back(Found("models/m/labels/stable")); };
  Start();
  EXPECT_EQ(found, (std::vector<int64_t>{0, 2}));
}

TEST_F(ModelReloadTest, ALabelOfAVersionThatIsNotThereIsLoggedOnce) {
  WritePolicy(
      "labels { key: 'stable' value: 1 } labels { key: 'next' value: 3 }");
  log_.SetLevels(observability::LogLevel::kWarning);
  testing::internal::CaptureStderr();
  Start();
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_TRUE(log_.Flush(absl::Seconds(10)));
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t line = log.find("next of version 3");
  EXPECT_NE(line, std::string::npos) << log;
  EXPECT_EQ(log.find("next of version 3", line + 1), std::string::npos) << log;
  EXPECT_EQ(log.find("stable of version"), std::string::npos) << log;
  EXPECT_EQ(log.find("the weights are random"), std::string::npos) << log;
}

TEST_F(ModelReloadTest, AVersionOfThePolicyThatIsNotThereIsLoggedOnce) {
  WritePolicy("specific: [1, 9]");
  log_.SetLevels(observability::LogLevel::kWarning);
  testing::internal::CaptureStderr();
  Start();
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_TRUE(log_.Flush(absl::Seconds(10)));
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string text = "the policy names versions that are not there";
  const size_t line = log.find(text);
  ASSERT_NE(line, std::string::npos) << log;
  EXPECT_EQ(log.find(text, line + 1), std::string::npos) << log;
  const std::string rest = log.substr(line, log.find('\n', line) - line);
  EXPECT_TRUE(absl::StrContains(rest, "models/m")) << log;
  EXPECT_TRUE(absl::StrContains(rest, "versions=9")) << log;
}

TEST_F(ModelReloadTest, AnUnloadOfAllTakesTheLabelsAlong) {
  Start();
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 1).ok());
  EXPECT_EQ(Unload("m"), absl::OkStatus());
  EXPECT_EQ(Found("models/m/labels/stable"), 0);
}

}  // namespace
}  // namespace sfmamba::repository
