#include "server/batching/executor.h"

#include <atomic>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/server/batching/executor_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {
namespace {

TEST_F(ExecutorTest, AnswersEachImageWithItsOwnResult) {
  const auto executor = MakeExecutor(4);
  Answer answers[4];
  for (int i = 0; i < 4; ++i) executor->Submit(MakeTask(answers[i], i));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(answers[i].logit(), i);
  EXPECT_EQ(sizes(), std::vector<int>({4}));
}

TEST_F(ExecutorTest, TellsEachImageOfItsBatch) {
  const auto executor = MakeExecutor(2);
  Answer first, second;
  executor->Submit(MakeTask(first, 1));
  const absl::Time then = base::SteadyNow();
  WaitUntil([then] { return base::SteadyNow() > then; }, "the next moment");
  executor->Submit(MakeTask(second, 2));
  first.Wait().IgnoreError();
  second.Wait().IgnoreError();
  EXPECT_EQ(first.info.batch_size, 2);
  EXPECT_EQ(first.info.padded_batch_size, 2);
  EXPECT_EQ(first.info.fold_factor, 20);
  EXPECT_EQ(first.info.size_class, "4x4");
  EXPECT_GT(first.info.started, then) << "once both are there";
  EXPECT_GT(first.info.queue, second.info.queue);
  EXPECT_LE(first.info.inference, second.info.inference);
  EXPECT_EQ(Metric("sfmamba_batches_total",
                   {{"model", "fake"}, {"bucket", "4x4"}, {"trigger", "full"}}),
            1);
}

TEST_F(ExecutorTest, PaddingIsCountedAndTold) {
  FakeModel::Options model;
  model.padding = 3;
  const auto executor = MakeExecutor(5, model);
  Answer answers[5];
  for (int i = 0; i < 5; ++i) executor->Submit(MakeTask(answers[i], i));
  for (Answer& answer : answers) {
    EXPECT_TRUE(answer.Wait().ok());
    EXPECT_EQ(answer.info.batch_size, 5);
    EXPECT_EQ(answer.info.padded_batch_size, 8);
  }
  EXPECT_EQ(Metric("sfmamba_padding_items_total", {{"model", "fake"}}), 3);
  EXPECT_EQ(Metric("sfmamba_batch_fold_occupancy_ratio", {{"model", "fake"}}),
            5. / 8);
}

TEST_F(ExecutorTest, ADeviceIsBusyUntilItsBatchEnds) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  executor->Submit(MakeTask(answer, 1));
  EXPECT_TRUE(answer.Wait().ok());
  const auto busy = [this] { return Metric("sfmamba_device_busy_ratio"); };
  EXPECT_GT(busy(), 0);
  WaitUntil(
      [&] {
        const double before = busy();
        absl::SleepFor(absl::Milliseconds(1));
        return busy() == before;
      },
      "the end of the device's work");
  EXPECT_LT(busy(), 1);
}

TEST_F(ExecutorTest, AnImageIsAnsweredWhileTheNextOneRuns) {
  absl::Notification go;
  FakeModel::Options model;
  model.one_by_one = true;
  model.before_image = [&](float value) {
    if (value == 1) {
      WaitFor(go, "the test's leave to end an image", kTestPatience);
    }
  };
  const auto executor = MakeExecutor(3, model);
  Answer answers[3];
  for (int i = 0; i < 3; ++i) executor->Submit(MakeTask(answers[i], i));
  EXPECT_EQ(answers[0].logit(), 0);
  EXPECT_EQ(answers[0].info.batch_size, 3);
  EXPECT_FALSE(answers[1].done.HasBeenNotified());
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 1);
  go.Notify();
  for (int i : {1, 2}) EXPECT_EQ(answers[i].logit(), i);
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 0);
  EXPECT_EQ(sizes(), std::vector<int>({3}));
}

TEST_F(ExecutorTest, TakesPixelsToo) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  BatchTask task = MakeTask(answer, 0);
  task.image.values.clear();
  task.image.pixels = std::vector<uint8_t>(3 * 4 * 4, 77);
  task.image.planar = true;
  executor->Submit(std::move(task));
  EXPECT_EQ(answer.logit(), 77);
  EXPECT_TRUE(last().planar);
}

TEST_F(ExecutorTest, OneFailingImageDoesNotFailTheOthers) {
  for (int poisoned = 0; poisoned < 8; ++poisoned) {
    const auto executor = MakeExecutor(8);
    Answer answers[8];
    for (int i = 0; i < 8; ++i) {
      executor->Submit(MakeTask(answers[i], i == poisoned ? kPoison : i));
    }
    for (int i = 0; i < 8; ++i) {
      if (i == poisoned) {
        EXPECT_EQ(answers[i].Wait().status().code(),
                  absl::StatusCode::kInternal);
        EXPECT_EQ(answers[i].reason(), "DEVICE_ERROR");
        EXPECT_EQ(answers[i].message(),
                  "the model failed: poison in a batch of 1");
      } else {
        EXPECT_EQ(answers[i].logit(), i) << "mate of image " << poisoned;
      }
    }
  }
}

TEST_F(ExecutorTest, ImagesWithoutAResultFailAlone) {
  const auto executor = MakeExecutor(2);
  Answer answers[2];
  executor->Submit(MakeTask(answers[0], 5));
  executor->Submit(MakeTask(answers[1], kForgotten));
  EXPECT_EQ(answers[0].logit(), 5);
  EXPECT_EQ(answers[1].reason(), "DEVICE_ERROR");
  EXPECT_EQ(answers[1].message(), "the model failed: 1 results for 2 images");
}

TEST_F(ExecutorTest, WhenBothHalvesFailAllFailAndNoMoreIsTried) {
  const auto executor = MakeExecutor(8);
  Answer answers[8];
  for (Answer& answer : answers) executor->Submit(MakeTask(answer, kPoison));
  for (Answer& answer : answers) {
    EXPECT_EQ(answer.reason(), "DEVICE_ERROR");
    EXPECT_EQ(answer.message(), "the model failed: poison in a batch of 8");
  }
  EXPECT_EQ(sizes(), std::vector<int>({8, 4, 4}));
}

TEST_F(ExecutorTest, ABatchThatIsTooLargeForTheDeviceIsHalved) {
  const auto executor = MakeExecutor(2);
  Answer answers[2];
  executor->Submit(MakeTask(answers[0], 5));
  executor->Submit(MakeTask(answers[1], kLarge));
  EXPECT_EQ(answers[0].logit(), 5);
  EXPECT_EQ(answers[1].logit(), kLarge);
  EXPECT_EQ(sizes(), std::vector<int>({2, 1, 1}));
}

TEST_F(ExecutorTest, AnImageTooLargeForTheDeviceMayComeAgain) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  executor->Submit(MakeTask(answer, kTooLarge));
  const absl::Status status = answer.Wait().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(answer.reason(), "DEVICE_OOM");
  EXPECT_EQ(server::GetErrorDetail(status).retry_after,
            absl::Milliseconds(500));
}

TEST_F(ExecutorTest, ADeviceThatFailsForGoodFailsAllAndIsToldOnce) {
  const auto executor = MakeExecutor(2);
  EXPECT_TRUE(executor->IsAlive(base::SteadyNow()));
  Answer answers[4];
  executor->Submit(MakeTask(answers[0], 1));
  executor->Submit(MakeTask(answers[1], kBreaksTheDevice));
  for (int i : {0, 1}) EXPECT_EQ(answers[i].reason(), "DEVICE_FAILED");
  EXPECT_FALSE(executor->IsAlive(base::SteadyNow()));
  for (int i : {2, 3}) executor->Submit(MakeTask(answers[i], i));
  for (int i : {2, 3}) {
    EXPECT_EQ(answers[i].Wait().status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(answers[i].reason(), "DEVICE_FAILED");
  }
  EXPECT_EQ(sizes(), std::vector<int>({2})) << "a broken device is not asked";
  absl::MutexLock lock(&log_.mu);
  EXPECT_EQ(log_.failures, std::vector<std::string>({"device 0: broken"}));
}

TEST_F(ExecutorTest, ABatchThatTookLongGivesThoseAfterItMoreTime) {
  constexpr absl::Duration kLong = absl::Milliseconds(200);
  absl::Notification started, go;
  std::atomic<int> batches{0};
  const auto executor =
      MakeExecutor(1, Before([&] {
                     if (++batches == 1) absl::SleepFor(kLong);
                     if (batches < 3) return;
                     started.Notify();
                     WaitFor(go, "leave to end a batch", kTestPatience);
                   }));
  Answer first, second, third;
  executor->Submit(MakeTask(first, 1));
  EXPECT_EQ(first.logit(), 1);
  executor->Submit(MakeTask(second, 2));  // This batch takes no time.
  EXPECT_EQ(second.logit(), 2);
  const absl::Time before = base::SteadyNow();
  executor->Submit(MakeTask(third, 3));
  WaitFor(started, "the start of a batch");
  EXPECT_TRUE(executor->IsAlive(
      before + HungAfter(model::VisionTask::kClassification, 1, kLong)));
  go.Notify();
  EXPECT_EQ(third.logit(), 3);
}

TEST_F(ExecutorTest, IsAliveUntilABatchHasRunForTooLong) {
  for (model::VisionTask task :
       {model::VisionTask::kClassification, model::VisionTask::kSegmentation}) {
    absl::Notification started, go;
    FakeModel::Options model = Before([&] {
      started.Notify();
      WaitFor(go, "the test's leave to end a batch", kTestPatience);
    });
    model.task = task;
    const auto executor = MakeExecutor(1, model);
    const absl::Duration limit = HungAfter(task, 1);
    const absl::Time before = base::SteadyNow();
    EXPECT_TRUE(executor->IsAlive(before + absl::Hours(1))) << "it is idle";
    Answer answer;
    executor->Submit(MakeTask(answer, 1));
    WaitFor(started, "the start of a batch");
    const absl::Time after = base::SteadyNow();
    EXPECT_TRUE(executor->IsAlive(before + limit));
    EXPECT_FALSE(executor->IsAlive(after + limit + absl::Nanoseconds(1)));
    go.Notify();
    EXPECT_EQ(answer.logit(), 1);
  }
}

TEST_F(ExecutorTest, AsManyBatchesRunAsTheModelHasContexts) {
  absl::BlockingCounter all_started(3);
  absl::Notification go;
  FakeModel::Options model = Before([&] {
    all_started.DecrementCount();
    WaitFor(go, "the test's leave to end a batch", kTestPatience);
  });
  model.contexts = 3;
  const auto executor = MakeExecutor(1, model);
  Answer answers[3];
  for (int i = 0; i < 3; ++i) executor->Submit(MakeTask(answers[i], i));
  WaitFor(all_started, "as many batches as there are slots");
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 3);
  go.Notify();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answers[i].logit(), i);
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 0);
}

TEST_F(ExecutorTest, ANonFiniteResultFailsItsImageOnly) {
  const auto executor = MakeExecutor(4);
  Answer answers[4];
  executor->Submit(MakeTask(answers[0], 5));
  executor->Submit(MakeTask(answers[1], kNotANumber));
  executor->Submit(
      MakeTask(answers[2], std::numeric_limits<float>::infinity()));
  executor->Submit(MakeTask(answers[3], kEmbeddingNotANumber));
  EXPECT_EQ(answers[0].logit(), 5);
  for (int i : {1, 2, 3}) {
    EXPECT_EQ(answers[i].Wait().status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(answers[i].reason(), "NON_FINITE_OUTPUT");
  }
  EXPECT_EQ(sizes(), std::vector<int>({4}));
}

TEST_F(ExecutorTest, ASizeTheModelRefusesIsTheClientsFault) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  executor->Submit(MakeTask(answer, 0, 1));
  EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(answer.info.padded_batch_size, 1) << "nothing more is known of it";
}

TEST_F(ExecutorTest, SizesRunApart) {
  const auto executor = MakeExecutor(2);
  Answer small[2], large[2];
  for (int i : {0, 1}) {
    executor->Submit(MakeTask(small[i], 1, 4));
    executor->Submit(MakeTask(large[i], 2, 8));
  }
  for (int i : {0, 1}) {
    EXPECT_EQ(small[i].logit(), 1);
    EXPECT_EQ(large[i].logit(), 2);
  }
  EXPECT_EQ(large[0].info.size_class, "8x4");
}

TEST_F(ExecutorTest, CancelledAndLateTasksAreAnsweredAndNotRun) {
  absl::Notification started, go;
  const auto executor = MakeExecutor(
      1, Before([&] {
        if (!started.HasBeenNotified()) started.Notify();
        WaitFor(go, "the test's leave to end a batch", kTestPatience);
      }));
  Answer running, cancelled, late;
  executor->Submit(MakeTask(running, 1));
  WaitFor(started, "the start of a batch");
  const auto flag = std::make_shared<std::atomic<bool>>(true);
  BatchTask task = MakeTask(cancelled, 2);
  task.cancelled = flag;
  executor->Submit(std::move(task));
  EXPECT_EQ(cancelled.Wait().status().code(), absl::StatusCode::kCancelled);
  task = MakeTask(late, 3);
  task.deadline = base::SteadyNow();
  executor->Submit(std::move(task));
  EXPECT_EQ(late.reason(), "EXPIRED_IN_QUEUE");
  EXPECT_EQ(Metric("sfmamba_queue_items", {{"model", "fake"}}), 0);
  go.Notify();
  EXPECT_EQ(running.logit(), 1);
  EXPECT_EQ(sizes(), std::vector<int>({1}));
}

TEST_F(ExecutorTest, EachContextIsPreparedForTheBatches) {
  FakeModel::Options model;
  model.contexts = 2;
  EXPECT_TRUE(MakeExecutor(6, model)->WaitUntilPrepared().ok());
  EXPECT_EQ(prepared(), std::vector<int>({6, 6}));
}

TEST_F(ExecutorTest, ContextsAreNotPreparedForBatchesThatDoNotFit) {
  FakeModel::Options model;
  model.contexts = 2;
  EXPECT_TRUE(
      MakeExecutor(2 * kTooManyImages, model)->WaitUntilPrepared().ok());
  EXPECT_EQ(prepared(),
            std::vector<int>({2 * kTooManyImages, kTooManyImages,
                              kTooManyImages / 2, kTooManyImages / 2}));
}

TEST_F(ExecutorTest, WithoutAContextTasksAreAnsweredWithTheReason) {
  FakeModel::Options model;
  model.make_context = absl::InternalError("no stream");
  const auto executor = MakeExecutor(2, model);
  Answer answers[2];
  for (Answer& answer : answers) executor->Submit(MakeTask(answer, 1));
  for (Answer& answer : answers) EXPECT_EQ(answer.reason(), "DEVICE_ERROR");
  EXPECT_EQ(executor->WaitUntilPrepared(), model.make_context);
  EXPECT_TRUE(sizes().empty());
}

TEST_F(ExecutorTest, HandsOnWhatIsAskedOfTheModel) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  BatchTask task = MakeTask(answer, 1);
  task.key.height = 32;
  task.image.original_height = 70;
  task.image.original_width = 90;
  model::DetectionOptions options;
  options.max_detections = 7;
  task.options = options;
  executor->Submit(std::move(task));
  EXPECT_EQ(answer.logit(), 1);
  const model::ModelInput input = last();
  EXPECT_EQ(input.height, 4);
  EXPECT_EQ(input.original_height, 70);
  EXPECT_EQ(input.original_width, 90);
  EXPECT_EQ(std::get<model::DetectionOptions>(input.options).max_detections, 7);
  EXPECT_EQ(answer.info.size_class, "32x4");
}

TEST_F(ExecutorTest, TheQueueIsVisibleInTheMetrics) {
  absl::Notification started, go;
  const auto executor = MakeExecutor(
      1, Before([&] {
        if (!started.HasBeenNotified()) started.Notify();
        WaitFor(go, "the test's leave to end a batch", kTestPatience);
      }));
  Answer answers[3];
  executor->Submit(MakeTask(answers[0], 0));
  WaitFor(started, "the start of a batch");
  BatchTask urgent = MakeTask(answers[1], 1);
  urgent.priority = server::Priority::kHigh;
  executor->Submit(std::move(urgent));
  executor->Submit(MakeTask(answers[2], 2));
  for (const char* priority : {"high", "normal"}) {
    EXPECT_EQ(Metric("sfmamba_queue_items", {{"priority", priority}}), 1);
    EXPECT_EQ(Metric("sfmamba_queue_bytes", {{"priority", priority}}), 192);
  }
  go.Notify();
  EXPECT_EQ(answers[2].logit(), 2);
  for (const char* priority : {"high", "normal", "low"}) {
    EXPECT_EQ(Metric("sfmamba_queue_items", {{"priority", priority}}), 0);
  }
}

TEST_F(ExecutorTest, TheDestructorLetsWhatWaitsRun) {
  Answer answers[3];
  {
    const auto executor = MakeExecutor(8);
    for (int i = 0; i < 3; ++i) executor->Submit(MakeTask(answers[i], i));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answers[i].logit(), i);
}

}  // namespace
}  // namespace sfmamba::batching
