// Tests requests, calls, shutdown and other writers while a repository changes.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/server/repository/reload_fixture.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;
using server::WriteModel;

// ---- Requests during changes ----

TEST_F(ModelReloadTest, RequestsInFlightAreAnsweredByWhatTheyFound) {
  Start();
  gate_.Close();
  absl::StatusOr<int64_t> answer;
  std::thread request([&] { answer = Predict("m"); });
  gate_.WaitForBatch();
  const auto before = *repository_->Find("m", "model");
  EXPECT_EQ(Unload("m"), absl::OkStatus()) << "it does not wait for them";
  EXPECT_EQ(States(), std::vector<std::string>{"1 UNLOADING"});
  EXPECT_EQ(Metric("sfmamba_model_state{model=m,state=UNLOADING,version=1}"),
            1);
  EXPECT_TRUE(before->Loaded().ok()) << "found before";
  gate_.Open();
  Join(request, "the answer");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(States(), std::vector<std::string>{"1 UNLOADING"});
}

TEST_F(ModelReloadTest, ManyThreadsLoadAndUnloadUnderRequests) {
  WriteModel(folder_, "m", "2");
  WritePolicy("all: true");
  Start();
  ASSERT_TRUE(repository_->SetLabel("m", "stable", 1).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, failed{0};
  std::vector<std::thread> requests;
  for (int i = 0; i < 3; ++i) {
    requests.emplace_back([&] {
      while (!stop) {
        const auto answer = Predict("m");
        ++(answer.ok() ? answered : failed);
      }
    });
  }
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([this, i] {
      for (int n = 0; n < 10; ++n) {
        if ((i + n) % 2 == 0) {
          LoadVersion("m", 2).IgnoreError();
        } else {
          Unload("m", 2).IgnoreError();
        }
        Load("m", {1, v1::Batching()}).IgnoreError();
      }
    });
  }
  for (std::thread& caller : callers) Join(caller, "a caller", kTestPatience);
  stop = true;
  for (std::thread& request : requests) Join(request, "a request");
  EXPECT_GT(answered.load(), 0);
  EXPECT_EQ(failed.load(), 0);
  ASSERT_TRUE(LoadVersion("m", 2).ok());
  AwaitStates({"1 READY", "2 READY"});
}

TEST_F(ModelReloadTest, TooManyCallsAreRefusedAtOnce) {
  Start();
  absl::Notification loading, go;
  on_load_ = [&] {
    loading.Notify();
    go.WaitForNotification();
    on_load_ = nullptr;
  };
  WriteModel(folder_, "m", "2");
  std::atomic<int> done{0}, full{0};
  const auto told = [&](const absl::Status& status) {
    ++done;
    if (Reason(status) != "QUEUE_FULL") return;
    ++full;
    EXPECT_EQ(server::GetErrorDetail(status).retry_after, absl::Seconds(1));
  };
  repository_->LoadModel("m", {}, told);
  WaitFor(loading, "the load");
  for (int i = 0; i < 1000; ++i) repository_->LoadModel("m", {}, told);
  EXPECT_EQ(full.load(), 1000 - 256);
  EXPECT_EQ(done.load(), full.load());
  EXPECT_EQ(*Predict("m"), 1);
  go.Notify();
  WaitUntil([&] { return done.load() == 1001; }, "the ends of all calls");
  EXPECT_EQ(full.load(), 1000 - 256);
}

TEST_F(ModelReloadTest, AModelThatIsLoadedForLongDoesNotHoldUpOthers) {
  Start();
  absl::Notification loading, go;
  std::atomic<int> loads{0};
  on_load_ = [&] {
    if (loads++ > 0) return;
    loading.Notify();
    go.WaitForNotification();
  };
  WriteModel(folder_, "m", "2");
  WriteModel(folder_, "n", "1");
  std::thread slow([&] { EXPECT_EQ(Load("m"), absl::OkStatus()); });
  WaitFor(loading, "the load that takes long");
  EXPECT_EQ(Load("n"), absl::OkStatus());
  EXPECT_EQ(*Predict("n"), 1);
  EXPECT_EQ(*Predict("m"), 1);
  go.Notify();
  Join(slow, "the load that takes long");
  EXPECT_EQ(*Predict("m"), 2);
}

TEST_F(ModelReloadTest, AnUnloadOrACallThatGoesEndsALoad) {
  for (const bool unload : {true, false}) {
    fs::remove_all(folder_ + "/n");
    Start();
    absl::Notification loading, go, ended;
    on_load_ = [&] {
      loading.Notify();
      go.WaitForNotification();
    };
    WriteModel(folder_, "n", "1");
    std::atomic<bool> gone{false};
    ModelRepository::LoadRequest request;
    request.cancelled = [&gone] { return gone.load(); };
    repository_->LoadModel("n", request, [&](const absl::Status& status) {
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
      ended.Notify();
    });
    WaitFor(loading, "the load");
    absl::Notification unloaded;
    if (unload) {
      repository_->UnloadModel("n", std::nullopt,
                               [&](const absl::Status&) { unloaded.Notify(); });
    } else {
      gone = true;
      unloaded.Notify();
    }
    go.Notify();
    WaitFor(ended, "the end of the load");
    WaitFor(unloaded, "the unload");
    EXPECT_FALSE(repository_->IsServing("n"));
    on_load_ = nullptr;
    EXPECT_EQ(Load("n"), absl::OkStatus());
  }
}

TEST_F(ModelReloadTest, TheEndInterruptsALoadAndTellsTheCallsThatWait) {
  Start();
  absl::Notification loading;
  on_load_ = [&] {
    if (!loading.HasBeenNotified()) loading.Notify();
    while (!stop_) std::this_thread::yield();
  };
  WriteModel(folder_, "m", "2");
  absl::Status first, second;
  repository_->LoadModel("m", {},
                         [&](const absl::Status& status) { first = status; });
  WaitFor(loading, "the load");
  repository_->LoadModel("m", {},
                         [&](const absl::Status& status) { second = status; });
  std::thread end([this] { repository_.reset(); });
  stop_ = true;
  Join(end, "the end");
  EXPECT_EQ(first.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(second.ok());
}

TEST_F(ModelReloadTest, AModelThatDoesNotFitIsRefusedOrReplacesTheOthers) {
  int64_t free = 1 << 20;
  options_.free_memory = [this, &free] {
    return repository_->IsServing("m") ? free : int64_t{1} << 40;
  };
  Start();
  WriteModel(folder_, "m", "2");
  const absl::Status status = Load("m");
  EXPECT_NE(status.message().find("memory: loading takes about"),
            std::string::npos)
      << status;
  EXPECT_EQ(*Predict("m"), 1);
  options_.unload_first = true;
  fs::remove_all(folder_ + "/m/2");
  Start();
  WriteModel(folder_, "m", "2");
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(*Predict("m"), 2);
}

TEST_F(ModelReloadTest, AVersionThatNeedsAllMemoryWaitsUntilTheOtherIsFreed) {
  options_.free_memory = [this] {
    return repository_->IsServing("m") ? 1 << 20 : int64_t{1} << 40;
  };
  options_.unload_first = true;
  Start();
  WriteModel(folder_, "m", "2");
  gate_.Close();
  std::thread request([&] { EXPECT_EQ(*Predict("m"), 1); });
  gate_.WaitForBatch();
  absl::Notification loading;
  on_load_ = [&loading] { loading.Notify(); };
  std::thread load([&] { EXPECT_EQ(Load("m"), absl::OkStatus()); });
  WaitUntil([&] { return States().front() == "1 UNLOADING"; },
            "the end of the first version");
  EXPECT_FALSE(loading.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  gate_.Open();
  Join(request, "the answer");
  Join(load, "the load");
  EXPECT_EQ(*Predict("m"), 2);
}

TEST_F(ModelReloadTest, WhatIsWrittenWhileItIsLoadedDoesNotServe) {
  Start();
  WriteModel(folder_, "m", "2");
  on_load_ = [this] {
    std::ofstream(folder_ + "/m/2/labels.txt", std::ios::app) << " ";
  };
  EXPECT_EQ(Load("m").message(),
            "models/m/versions/2: its files were written while it was loaded");
  EXPECT_EQ(*Predict("m"), 1);
  on_load_ = nullptr;
  EXPECT_EQ(Load("m"), absl::OkStatus());
  EXPECT_EQ(*Predict("m"), 2);
}

// ---- Polling ----

class PollTest : public ModelReloadTest {
 protected:
  PollTest() {
    options_.explicit_control = false;
    options_.poll_period = absl::Milliseconds(2);
  }
};

TEST_F(PollTest, FollowsTheFolder) {
  Start();
  WriteModel(folder_, "m", "2");
  AwaitStates({"2 READY"});
  WriteModel(folder_, "new", "1");
  WaitUntil([this] { return repository_->IsServing("new"); }, "a new model");
  fs::remove_all(folder_ + "/new");
  WaitUntil([this] { return Found("new") == 0; }, "the end of a model");
  WritePolicy("all: true");
  AwaitStates({"1 READY", "2 READY"});
  fs::remove(folder_ + "/m/policy.textproto");
  AwaitStates({"2 READY"});
}

TEST_F(PollTest, AModelWhoseFolderIsGoneIsNotFoundByCalls) {
  options_.explicit_control = true;
  WriteModel(folder_, "gone", "1");
  Start();
  EXPECT_EQ(Unload("gone"), absl::OkStatus());
  fs::remove_all(folder_ + "/gone");
  WaitUntil([this] { return absl::IsNotFound(Unload("gone")); },
            "the end of a model");
}

TEST_F(PollTest, WaitsForAFolderThatIsBeingWritten) {
  Start();
  WriteModel(folder_, "whole", "2");
  const std::string from = folder_ + "/whole/2/", to = folder_ + "/m/2/";
  fs::create_directories(to);
  fs::copy_file(from + "config.textproto", to + "config.textproto");
  fs::copy_file(from + "labels.txt", to + "labels.txt");
  for (int i = 0; i < 50; ++i) {
    std::ofstream(to + "model.safetensors") << (i % 2 == 0 ? "weig" : "wei");
    EXPECT_EQ(Found("m"), 1);
    std::this_thread::yield();
  }
  fs::remove(to + "model.safetensors");
  fs::copy_file(from + "model.safetensors", to + "model.safetensors");
  AwaitStates({"2 READY"});
}

TEST_F(PollTest, TriesAgainWhatFailed) {
  options_.poll_period = absl::Milliseconds(30);
  Start();
  std::vector<absl::Time> tries;
  on_load_ = [&tries] { tries.push_back(base::SteadyNow()); };
  WriteModel(folder_, "m", "2.new");
  std::ofstream(folder_ + "/m/2.new/unloadable") << "";
  fs::rename(folder_ + "/m/2.new", folder_ + "/m/2");
  AwaitStates({"1 READY", "2 UNAVAILABLE"});
  WaitUntil([this] { return loads_ > 4; }, "four loads of version 2");
  fs::remove(folder_ + "/m/2/unloadable");  // This file is not watched.
  AwaitStates({"2 READY"});
  EXPECT_GE(tries[3] - tries[0], (1 + 2 + 4) * options_.poll_period)
      << "each waits twice as long as the one before";
}

TEST_F(PollTest, AFolderThatIsAwayForAWhileChangesNothing) {
  Start();
  fs::rename(folder_, folder_ + "-away");
  const int loads = loads_;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(*Predict("m"), 1);
    std::this_thread::yield();
  }
  fs::rename(folder_ + "-away", folder_);
  EXPECT_EQ(*Predict("m"), 1);
  EXPECT_EQ(loads_, loads);
}

TEST_F(PollTest, WhatACallUnloadedStaysAway) {
  options_.explicit_control = true;
  WriteModel(folder_, "m", "2");
  WritePolicy("all: true");
  Start();
  EXPECT_EQ(Unload("m", 1), absl::OkStatus());
  WriteModel(folder_, "other", "1");
  WaitUntil([this] { return repository_->IsServing("other"); }, "a look");
  AwaitStates({"1 UNAVAILABLE", "2 READY"});
  EXPECT_EQ(Unload("m"), absl::OkStatus());
  WriteModel(folder_, "third", "1");
  WaitUntil([this] { return repository_->IsServing("third"); }, "a look");
  AwaitStates({"1 UNAVAILABLE", "2 UNAVAILABLE"});
}

TEST_F(PollTest, FollowsLabelsWhereNothingIsLoaded) {
  WriteModel(folder_, "m", "2");
  WritePolicy("all: true");
  Start();
  WritePolicy("all: true labels { key: 'old' value: 1 }");
  WaitUntil([this] { return Found("models/m/labels/old") == 1; }, "a label");
  EXPECT_EQ(loads_, 2);
}

TEST_F(PollTest, ABrokenPolicyChangesNothing) {
  WriteModel(folder_, "m", "2");
  WritePolicy("all: true");
  Start();
  WritePolicy("all: perhaps");
  WriteModel(folder_, "m", "3");
  AwaitStates({"1 READY", "2 READY", "3 READY"});
}

}  // namespace
}  // namespace sfmamba::repository
