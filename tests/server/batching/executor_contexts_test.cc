// Tests a model in which each context has its own device, for example its own
// group of CPU cores.

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "server/threads/worker.h"
#include "tests/server/batching/executor_fixture.h"

namespace sfmamba::batching {
namespace {

using server::Priority;

class ExecutorContextsTest : public ExecutorTest {
 protected:
  static constexpr int kContexts = 2;

  ExecutorContextsTest() { options_.batch.mode = BatchMode::kLatency; }

  // Returns the options of a model with two contexts. Each context has its own
  // device. Images block until they are released.
  FakeModel::Options Model() {
    FakeModel::Options model;
    model.contexts = kContexts;
    model.one_device = false;
    model.device = "cpu";
    model.before_image = [this](float value) { Hold(value); };
    return model;
  }
  std::unique_ptr<Executor> MakeReady() {
    auto executor = MakeExecutor(/*max_batch_size=*/1, Model());
    EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
    return executor;
  }

  void Hold(float value) {
    absl::MutexLock lock(&mu_);
    begun_.push_back(value);
    running_.insert(value);
    const auto released = [this, value]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return all_released_ || released_.count(value) > 0;
    };
    TimeLimit limit("the test's leave to end an image", kTestPatience);
    mu_.Await(absl::Condition(&released));
    running_.erase(value);
  }
  void Release(float value) {
    absl::MutexLock lock(&mu_);
    released_.insert(value);
  }
  void ReleaseAll() {
    absl::MutexLock lock(&mu_);
    all_released_ = true;
  }
  // Waits until exactly these images run.
  void WaitUntilRunning(const std::set<float>& values) {
    const auto as_wanted = [this, &values]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                               mu_) { return running_ == values; };
    TimeLimit limit("the images that are to run");
    absl::MutexLock lock(&mu_, absl::Condition(&as_wanted));
  }
  // Returns the images in the order in which they started.
  std::vector<float> begun() {
    absl::MutexLock lock(&mu_);
    return begun_;
  }

  static BatchTask Task(Answer& answer, float value,
                        server::Priority priority = server::Priority::kNormal) {
    BatchTask task = MakeTask(answer, value);
    task.priority = priority;
    return task;
  }

 private:
  absl::Mutex mu_;
  bool all_released_ ABSL_GUARDED_BY(mu_) = false;
  std::set<float> running_ ABSL_GUARDED_BY(mu_);
  std::set<float> released_ ABSL_GUARDED_BY(mu_);
  std::vector<float> begun_ ABSL_GUARDED_BY(mu_);
};

TEST_F(ExecutorContextsTest, EachContextsDeviceIsInTheMetrics) {
  const auto executor = MakeReady();
  Answer answers[2];
  for (int i : {0, 1}) executor->Submit(Task(answers[i], 1 + i));
  WaitUntilRunning({1, 2});
  const auto is_busy = [this](const char* device) {
    return Metric("sfmamba_device_busy_ratio", {{"device", device}}) > 0;
  };
  WaitUntil([&] { return is_busy("cpu:0") && is_busy("cpu:1"); },
            "both contexts' time in the metrics");
  EXPECT_EQ(Metric("sfmamba_device_busy_ratio", {{"device", "cpu"}}), -1);
  ReleaseAll();
  for (int i : {0, 1}) EXPECT_EQ(answers[i].logit(), 1 + i);
}

TEST_F(ExecutorContextsTest, OneContextIsPreparedForTheBatches) {
  EXPECT_EQ(MakeExecutor(6, Model())->WaitUntilPrepared(), absl::OkStatus());
  std::vector<int> sizes = prepared();
  std::sort(sizes.begin(), sizes.end());
  EXPECT_EQ(sizes, std::vector<int>({1, 6})) << "the other one for one image";
  FakeModel::Options lone;
  lone.device = "cpu";
  EXPECT_EQ(MakeExecutor(6, lone)->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(prepared().back(), 6);
}

TEST_F(ExecutorContextsTest, GpusAreSetUpAtTheSameTime) {
  FakeModel::Options model = Model();
  model.device = "cuda";
  model.before_prepare = [this] { Hold(1); };
  model.before_image = [](float) {};
  const auto executor = MakeExecutor(6, std::move(model));
  WaitUntil([&] { return begun().size() == 2; }, "both GPUs' set-up");
  ReleaseAll();
  EXPECT_EQ(executor->WaitUntilPrepared(), absl::OkStatus());
}

TEST_F(ExecutorContextsTest, ContextsOfOneGpuAreSetUpInTurn) {
  FakeModel::Options model = Model();
  model.device = "cuda:0";
  model.one_device = true;
  std::atomic<int> at_once{0};
  model.before_prepare = [&] {
    EXPECT_EQ(++at_once, 1);
    absl::SleepFor(absl::Milliseconds(10));
    --at_once;
  };
  model.before_image = [](float) {};
  EXPECT_EQ(MakeExecutor(6, std::move(model))->WaitUntilPrepared(),
            absl::OkStatus());
}

TEST_F(ExecutorContextsTest, InTheBackgroundEachContextRunsOneImage) {
  server::Worker background({"background"});
  options_.background = &background;
  EXPECT_EQ(MakeExecutor(6, Model())->WaitUntilPrepared(), absl::OkStatus());
  EXPECT_EQ(prepared(), std::vector<int>({1, 1}));
}

TEST_F(ExecutorContextsTest, AContextTakesTheNextWhileTheOtherRuns) {
  const auto executor = MakeReady();
  Answer answers[4];
  executor->Submit(Task(answers[0], 1));  // Takes longest.
  for (int i = 1; i < 4; ++i) executor->Submit(Task(answers[i], 1 + i));
  WaitUntilRunning({1, 2});
  Release(2);
  WaitUntilRunning({1, 3});
  Release(3);
  WaitUntilRunning({1, 4});
  ReleaseAll();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answers[i].logit(), 1 + i);
}

TEST_F(ExecutorContextsTest, AnUrgentImageTakesTheFirstContextThatIsFree) {
  const auto executor = MakeReady();
  Answer first, second, low, normal, high;
  executor->Submit(Task(first, 1));
  executor->Submit(Task(second, 2));
  WaitUntilRunning({1, 2});
  executor->Submit(Task(low, 3, server::Priority::kLow));
  executor->Submit(Task(normal, 4));
  executor->Submit(Task(high, 5, server::Priority::kHigh));
  Release(2);
  WaitUntilRunning({1, 5});
  ReleaseAll();
  EXPECT_EQ(low.logit(), 3);
  EXPECT_EQ(normal.logit(), 4);
  EXPECT_EQ(high.logit(), 5);
}

TEST_F(ExecutorContextsTest, WhatWaitsIsCancelledAndExpiresWhileBothRun) {
  const auto executor = MakeReady();
  Answer running[2], cancelled, expired;
  for (int i : {0, 1}) executor->Submit(Task(running[i], 1 + i));
  WaitUntilRunning({1, 2});
  BatchTask task = Task(cancelled, 3);
  task.cancelled = std::make_shared<std::atomic<bool>>(true);
  executor->Submit(std::move(task));
  EXPECT_EQ(cancelled.Wait().status().code(), absl::StatusCode::kCancelled);
  task = Task(expired, 4);
  task.deadline = base::SteadyNow();
  executor->Submit(std::move(task));
  EXPECT_EQ(expired.reason(), "EXPIRED_IN_QUEUE");
  ReleaseAll();
  for (int i : {0, 1}) EXPECT_EQ(running[i].logit(), 1 + i);
  EXPECT_EQ(begun().size(), 2);
}

TEST_F(ExecutorContextsTest, WhatFailsInOneContextFailsThereOnly) {
  const auto executor = MakeReady();
  Answer good, bad, later;
  executor->Submit(Task(good, 1));
  executor->Submit(Task(bad, kPoison));
  WaitUntilRunning({1, kPoison});
  Release(kPoison);
  EXPECT_EQ(bad.reason(), "DEVICE_ERROR");
  executor->Submit(Task(later, 2));
  WaitUntilRunning({1, 2});
  ReleaseAll();
  EXPECT_EQ(good.logit(), 1);
  EXPECT_EQ(later.logit(), 2);
}

TEST_F(ExecutorContextsTest, OfAModelThatIsBrokenBothContextsSaySoOnce) {
  const auto executor = MakeReady();
  Answer answers[6];
  executor->Submit(Task(answers[0], 1));
  executor->Submit(Task(answers[1], kBreaksTheDevice));
  WaitUntilRunning({1, kBreaksTheDevice});
  for (int i = 2; i < 6; ++i) executor->Submit(Task(answers[i], i));
  Release(kBreaksTheDevice);  // The other context has no third image yet.
  answers[1].Wait();
  ReleaseAll();
  for (int i = 1; i < 6; ++i) EXPECT_EQ(answers[i].reason(), "DEVICE_FAILED");
  answers[0].Wait();  // The result may be OK or an error.
  absl::MutexLock lock(&log_.mu);
  EXPECT_EQ(log_.failures.size(), 1);
}

TEST_F(ExecutorContextsTest, TheDestructorLetsWhatWaitsRunOnBoth) {
  std::vector<Answer> answers(20);
  {
    const auto executor = MakeReady();
    for (int i = 0; i < 20; ++i) executor->Submit(Task(answers[i], 1 + i));
    WaitUntilRunning({1, 2});
    ReleaseAll();
  }
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(answers[i].done.HasBeenNotified());
    EXPECT_EQ(answers[i].logit(), 1 + i);
  }
}

// Although one model has many waiting images, another model gets the next free
// context.
TEST_F(ExecutorContextsTest, AFloodedModelLeavesAContextToAnother) {
  const auto flooded = MakeReady();
  const auto other = MakeReady();
  std::vector<Answer> flood(8);
  for (int i = 0; i < 8; ++i) flooded->Submit(Task(flood[i], 1 + i));
  WaitUntilRunning({1, 2});
  Answer answer;
  other->Submit(Task(answer, 100));
  WaitUntil(
      [this] {
        return devices_->Get("cpu:0", 1).waiting() +
                   devices_->Get("cpu:1", 1).waiting() ==
               2;
      },
      "both threads of the other model");
  Release(2);
  WaitUntilRunning({1, 100});
  ReleaseAll();
  EXPECT_EQ(answer.logit(), 100);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(flood[i].logit(), 1 + i);
}

TEST_F(ExecutorContextsTest, AContextThatAnotherModelUsesIsLeftOut) {
  const auto executor = MakeReady();
  const auto other = devices_->Get("cpu:0", 1).Join();
  const auto turn = other->Take(server::Priority::kNormal, absl::Seconds(1));
  ReleaseAll();
  for (int i = 0; i < 4; ++i) {
    Answer answer;
    executor->Submit(Task(answer, 1 + i));
    EXPECT_EQ(answer.logit(), 1 + i);
  }
  EXPECT_EQ(Metric("sfmamba_device_busy_ratio", {{"device", "cpu:0"}}), 0);
}

// Many callers use two models that share both devices.
TEST_F(ExecutorContextsTest, UnderLoadEachImageIsAnsweredOnceByItsModel) {
  ReleaseAll();
  const std::unique_ptr<Executor> executors[] = {MakeReady(), MakeReady()};
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 50; ++i) {
        Answer answer;
        const float value = 1 + caller * 50 + i;
        executors[i % 2]->Submit(
            Task(answer, value, static_cast<server::Priority>(i % 3)));
        if (answer.logit() == value) ++right;
      }
    });
  }
  for (std::thread& caller : callers) Join(caller, "a caller");
  EXPECT_EQ(right.load(), 8 * 50);
}

TEST_F(ExecutorContextsTest, WaitsAreDividedAmongTheContexts) {
  BatchTime time;
  time.key.height = time.key.width = 4;
  time.key.type = ImageType::kFloat32;
  time.images = 1;
  time.median = time.p95 = absl::Seconds(2);
  options_.times = {time};
  const auto executor = MakeReady();
  AdmissionRequest request;
  request.key = time.key;
  request.deadline = base::SteadyNow() + absl::Milliseconds(11500);
  // Each context runs five batches of 2 s before the deadline.
  std::vector<absl::StatusOr<Reservation>> held;
  for (int i = 0; i < 16; ++i) {
    auto room = executor->Admit(request, 0);
    if (room.ok()) held.push_back(std::move(room));
  }
  EXPECT_EQ(held.size(), 10);
}

TEST_F(ExecutorTest, InputsHaveMemoryForABatchOrOnGpusForAllThatWait) {
  constexpr int64_t kImage = 3 * 4 * 4;
  options_.batch.max_queue_items = 10;
  FakeModel::Options model;
  model.contexts = 2;
  model.device = "cpu";
  MakeExecutor(6, model);
  EXPECT_EQ(input_bytes(), 6 * kImage);
  model.device = "cuda:0";
  MakeExecutor(6, model);
  EXPECT_EQ(input_bytes(), (2 * 6 + 10) * kImage);
}

TEST_F(ExecutorTest, OnlyInputsOfTheModelsOwnMemoryArePageLocked) {
  const auto executor = MakeExecutor(1);
  const auto run = [&](image::Pixels pixels) {
    Answer answer;
    BatchTask task = MakeTask(answer, 0);
    task.image.values.clear();
    task.image.pixels = std::move(pixels);
    std::fill_n(task.image.pixels.data(), task.image.pixels.size(), 77);
    executor->Submit(std::move(task));
    EXPECT_EQ(answer.logit(), 77);
  };
  run(executor->pixels().Take(3 * 4 * 4));
  EXPECT_TRUE(last().page_locked);
  run(std::vector<uint8_t>(3 * 4 * 4));
  EXPECT_FALSE(last().page_locked);
}

}  // namespace
}  // namespace sfmamba::batching
