#include "server/executor.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/error.h"

namespace sfmamba {
namespace {

// Answers each image with its first value as the only logit; fails a batch that
// holds kPoison, and answers kNotANumber with NaN.
constexpr float kPoison = -1;
constexpr float kNotANumber = -2;
// Takes all of the memory: of a batch of others, or even alone.
constexpr float kLarge = -3;
constexpr float kTooLarge = -4;
constexpr float kBreaksTheDevice = -5;  // From then on each Run fails.

class FakeModel : public VisionModel {
 public:
  struct Log {
    absl::Mutex mu;
    std::vector<int> sizes ABSL_GUARDED_BY(mu);
    ModelInput last ABSL_GUARDED_BY(mu);  // Of the last Run, the last image.
    std::vector<std::string> failures ABSL_GUARDED_BY(mu);  // Of the device.
  };

  // `before` is called at the start of each Run.
  FakeModel(Log* log, std::function<void()> before, VisionTask task, int slots)
      : log_(log), before_(std::move(before)), slots_(slots) {
    config_.image_size = 4;
    config_.task = task;
    config_.short_side = 8;
    config_.long_side = 16;
  }

  absl::StatusOr<std::vector<Result>> Run(
      absl::Span<const ModelInput> images) override {
    {
      absl::MutexLock lock(&log_->mu);
      log_->sizes.push_back(images.size());
      log_->last = images.back();
    }
    before_();
    std::vector<Result> results;
    for (const ModelInput& image : images) {
      const float value =
          image.pixels != nullptr ? image.pixels[0] : image.values[0];
      if (value == kPoison) return absl::InternalError("poisoned");
      if (value == kLarge && images.size() > 1) {
        return absl::ResourceExhaustedError("out of memory");
      }
      if (value == kTooLarge) return absl::ResourceExhaustedError("the same");
      if (value == kBreaksTheDevice) broken_.store(true);
      if (broken_.load()) return absl::InternalError("no device");
      if (image.height == 1) return absl::InvalidArgumentError("height 1");
      Classification classification;
      classification.logits = {value == kNotANumber
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : value};
      results.push_back(std::move(classification));
    }
    return results;
  }
  const ModelConfig& config() const override { return config_; }
  Precision precision() const override { return Precision::kFloat32; }
  std::string device() const override { return "fake"; }
  int fold_factor(int images) const override { return 10 * images; }
  int slots() const override { return slots_; }
  absl::Status health() const override {
    return broken_.load() ? absl::InternalError("device 0: broken")
                          : absl::OkStatus();
  }

 private:
  Log* log_;
  std::function<void()> before_;
  const int slots_;
  std::atomic<bool> broken_{false};
  ModelConfig config_;
};

struct Answer {
  absl::Notification done;
  absl::StatusOr<Result> result;
  BatchInfo info;

  const absl::StatusOr<Result>& Wait() {
    done.WaitForNotification();
    return result;
  }
  float logit() { return std::get<Classification>(*Wait()).logits[0]; }
  std::string reason() { return GetErrorDetail(Wait().status()).reason; }
};

Task MakeTask(Answer& answer, float value, int height = 4) {
  Task task;
  task.image.height = task.bucket_height = height;
  task.image.width = task.bucket_width = 4;
  task.image.values.assign(3 * height * 4, value);
  task.done = [&answer](absl::StatusOr<Result> result, const BatchInfo& info) {
    answer.result = std::move(result);
    answer.info = info;
    answer.done.Notify();  // Aborts if called twice.
  };
  return task;
}

class ExecutorTest : public ::testing::Test {
 protected:
  // Batches leave when they hold `max_batch_size` images, and not before.
  std::unique_ptr<Executor> MakeExecutor(
      int max_batch_size, std::function<void()> before = [] {},
      VisionTask task = VisionTask::kClassification, int slots = 1) {
    Executor::Options options;
    options.name = "fake";
    options.version = "1";
    options.batch.max_batch_size = max_batch_size;
    options.batch.max_queue_delay = absl::Hours(1);
    options.device_failed = [this](const absl::Status& status) {
      absl::MutexLock lock(&log_.mu);
      log_.failures.push_back(std::string(status.message()));
    };
    return std::make_unique<Executor>(
        options,
        std::make_unique<FakeModel>(&log_, std::move(before), task, slots),
        &metrics_);
  }

  std::vector<int> sizes() {
    absl::MutexLock lock(&log_.mu);
    return log_.sizes;
  }

  // What the model was given last; its pixels are gone.
  ModelInput last() {
    absl::MutexLock lock(&log_.mu);
    return log_.last;
  }

  // The value of the series of `name` whose labels include all of `labels`.
  double Metric(const std::string& name,
                std::vector<std::pair<std::string, std::string>> labels = {}) {
    for (const prometheus::MetricFamily& family : metrics_.Collect()) {
      if (family.name != name) continue;
      for (const prometheus::ClientMetric& metric : family.metric) {
        const bool matches =
            std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
              return std::any_of(metric.label.begin(), metric.label.end(),
                                 [&](const auto& has) {
                                   return has.name == label.first &&
                                          has.value == label.second;
                                 });
            });
        if (matches) return metric.counter.value + metric.gauge.value;
      }
    }
    return -1;
  }

  FakeModel::Log log_;
  Metrics metrics_{BuildInfo()};
};

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
  executor->Submit(MakeTask(second, 2));
  first.Wait().IgnoreError();
  second.Wait().IgnoreError();
  EXPECT_EQ(first.info.batch_size, 2);
  EXPECT_EQ(first.info.padded_batch_size, 2);
  EXPECT_EQ(first.info.fold_factor, 20);
  EXPECT_EQ(first.info.bucket, "4x4");
  EXPECT_GE(first.info.queue, second.info.queue);
  EXPECT_EQ(first.info.inference, second.info.inference);
  EXPECT_EQ(Metric("sfmamba_batches_total",
                   {{"model", "fake"}, {"bucket", "4x4"}, {"trigger", "full"}}),
            1);
}

TEST_F(ExecutorTest, TakesPixelsToo) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  Task task = MakeTask(answer, 0);
  task.image.values.clear();
  task.image.pixels.assign(3 * 4 * 4, 77);
  executor->Submit(std::move(task));
  EXPECT_EQ(answer.logit(), 77);
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
      } else {
        EXPECT_EQ(answers[i].logit(), i) << "mate of image " << poisoned;
      }
    }
  }
}

TEST_F(ExecutorTest, WhenBothHalvesFailAllFailAndNoMoreIsTried) {
  const auto executor = MakeExecutor(8);
  Answer answers[8];
  for (Answer& answer : answers) executor->Submit(MakeTask(answer, kPoison));
  for (Answer& answer : answers) EXPECT_EQ(answer.reason(), "DEVICE_ERROR");
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
  EXPECT_LT(GetErrorDetail(status).retry_after, absl::InfiniteDuration());
}

TEST_F(ExecutorTest, ADeviceThatFailsForGoodFailsAllAndIsToldOnce) {
  const auto executor = MakeExecutor(2);
  EXPECT_TRUE(executor->IsAlive(SteadyNow()));
  Answer answers[4];
  executor->Submit(MakeTask(answers[0], 1));
  executor->Submit(MakeTask(answers[1], kBreaksTheDevice));
  for (int i : {0, 1}) EXPECT_EQ(answers[i].reason(), "DEVICE_ERROR");
  EXPECT_FALSE(executor->IsAlive(SteadyNow()));
  for (int i : {2, 3}) executor->Submit(MakeTask(answers[i], i));
  for (int i : {2, 3}) {
    EXPECT_EQ(answers[i].Wait().status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(answers[i].reason(), "DEVICE_ERROR");
  }
  EXPECT_EQ(sizes(), std::vector<int>({2})) << "a broken device is not asked";
  absl::MutexLock lock(&log_.mu);
  EXPECT_EQ(log_.failures, std::vector<std::string>({"device 0: broken"}));
}

TEST(HungAfterTest, ADenseModelHasLongerForEachImageOfItsBatch) {
  EXPECT_EQ(HungAfter(VisionTask::kClassification, 1), absl::Seconds(10));
  EXPECT_EQ(HungAfter(VisionTask::kClassification, 256), absl::Seconds(10));
  EXPECT_EQ(HungAfter(VisionTask::kDetection, 1), absl::Minutes(1));
  EXPECT_EQ(HungAfter(VisionTask::kSegmentation, 4), absl::Minutes(4));
}

TEST_F(ExecutorTest, IsAliveUntilABatchHasRunForTooLong) {
  for (VisionTask task :
       {VisionTask::kClassification, VisionTask::kSegmentation}) {
    absl::Notification started, go;
    const auto executor = MakeExecutor(
        1,
        [&] {
          started.Notify();
          go.WaitForNotification();
        },
        task);
    const absl::Duration limit = HungAfter(task, 1);
    const absl::Time before = SteadyNow();
    EXPECT_TRUE(executor->IsAlive(before + absl::Hours(1))) << "it is idle";
    Answer answer;
    executor->Submit(MakeTask(answer, 1));
    started.WaitForNotification();
    const absl::Time after = SteadyNow();
    EXPECT_TRUE(executor->IsAlive(before + limit));
    EXPECT_FALSE(executor->IsAlive(after + limit + absl::Nanoseconds(1)));
    go.Notify();
    EXPECT_EQ(answer.logit(), 1);
  }
}

TEST_F(ExecutorTest, AsManyBatchesRunAsTheModelHasSlots) {
  absl::BlockingCounter all_started(3);
  absl::Notification go;
  const auto executor = MakeExecutor(
      1,
      [&] {
        all_started.DecrementCount();
        go.WaitForNotification();
      },
      VisionTask::kClassification, 3);
  Answer answers[3];
  for (int i = 0; i < 3; ++i) executor->Submit(MakeTask(answers[i], i));
  all_started.Wait();
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 3);
  go.Notify();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answers[i].logit(), i);
  EXPECT_EQ(Metric("sfmamba_in_flight_batches", {{"model", "fake"}}), 0);
}

TEST_F(ExecutorTest, ANonFiniteResultFailsItsImageOnly) {
  const auto executor = MakeExecutor(3);
  Answer answers[3];
  executor->Submit(MakeTask(answers[0], 5));
  executor->Submit(MakeTask(answers[1], kNotANumber));
  executor->Submit(
      MakeTask(answers[2], std::numeric_limits<float>::infinity()));
  EXPECT_EQ(answers[0].logit(), 5);
  for (int i : {1, 2}) {
    EXPECT_EQ(answers[i].Wait().status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(answers[i].reason(), "NON_FINITE_OUTPUT");
  }
  EXPECT_EQ(sizes(), std::vector<int>({3}));
}

TEST_F(ExecutorTest, ASizeTheModelRefusesIsTheClientsFault) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  executor->Submit(MakeTask(answer, 0, 1));
  EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kInvalidArgument);
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
  EXPECT_EQ(large[0].info.bucket, "8x4");
}

TEST_F(ExecutorTest, CancelledAndLateTasksAreAnsweredAndNotRun) {
  absl::Notification started, go;
  const auto executor = MakeExecutor(1, [&] {
    if (!started.HasBeenNotified()) started.Notify();
    go.WaitForNotification();
  });
  Answer running, cancelled, late;
  executor->Submit(MakeTask(running, 1));
  started.WaitForNotification();
  const auto flag = std::make_shared<std::atomic<bool>>(true);
  Task task = MakeTask(cancelled, 2);
  task.cancelled = flag;
  executor->Submit(std::move(task));
  EXPECT_EQ(cancelled.Wait().status().code(), absl::StatusCode::kCancelled);
  task = MakeTask(late, 3);
  task.deadline = SteadyNow();
  executor->Submit(std::move(task));
  EXPECT_EQ(late.reason(), "EXPIRED_IN_QUEUE");
  go.Notify();
  EXPECT_EQ(running.logit(), 1);
  EXPECT_EQ(sizes(), std::vector<int>({1}));
}

TEST_F(ExecutorTest, WarmUpRunsEachPowerOfTwoAndTheLargestBatch) {
  EXPECT_TRUE(MakeExecutor(6)->WarmUp().ok());
  EXPECT_EQ(sizes(), std::vector<int>({6, 4, 2, 1}));
}

TEST_F(ExecutorTest, WarmUpRunsEachSizeInAllSlotsAtATime) {
  // Each Run waits for the other of its size.
  absl::Barrier* barrier = nullptr;
  absl::Mutex mu;
  int waiting = 0;
  const auto executor = MakeExecutor(
      2,
      [&] {
        absl::Barrier* mine;
        {
          absl::MutexLock lock(&mu);
          if (waiting++ % 2 == 0) barrier = new absl::Barrier(2);
          mine = barrier;
        }
        if (mine->Block()) delete mine;
      },
      VisionTask::kClassification, 2);
  EXPECT_TRUE(executor->WarmUp().ok());
  EXPECT_EQ(sizes(), std::vector<int>({2, 2, 1, 1}));
}

TEST_F(ExecutorTest, WarmUpOfADenseModelRunsOneImageOfACommonShape) {
  EXPECT_TRUE(MakeExecutor(
                  6, [] {}, VisionTask::kDetection)
                  ->WarmUp()
                  .ok());
  EXPECT_EQ(sizes(), std::vector<int>({1}));
  const ModelInput input = last();
  EXPECT_EQ(input.height, 8);
  EXPECT_EQ(input.width, 10);  // 4:3, of 16 at most.
  EXPECT_TRUE(input.detection.masks);
}

TEST_F(ExecutorTest, HandsOnWhatIsAskedOfTheModel) {
  const auto executor = MakeExecutor(1);
  Answer answer;
  Task task = MakeTask(answer, 1);
  task.bucket_height = 32;
  task.image.original_height = 70;
  task.image.original_width = 90;
  task.detection.max_detections = 7;
  task.segmentation.confidence = true;
  executor->Submit(std::move(task));
  EXPECT_EQ(answer.logit(), 1);
  const ModelInput input = last();
  EXPECT_EQ(input.height, 4);
  EXPECT_EQ(input.original_height, 70);
  EXPECT_EQ(input.original_width, 90);
  EXPECT_EQ(input.detection.max_detections, 7);
  EXPECT_TRUE(input.segmentation.confidence);
  EXPECT_EQ(answer.info.bucket, "32x4");
}

TEST_F(ExecutorTest, ReservesWithinTheCaps) {
  const auto executor = MakeExecutor(1);
  EXPECT_TRUE(executor->Reserve(64, 1 << 20).ok());
  const absl::Status refused = executor->Reserve(1 << 20, 0).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorDetail(refused).reason, "QUEUE_FULL");
}

TEST_F(ExecutorTest, TheQueueIsVisibleInTheMetrics) {
  absl::Notification started, go;
  const auto executor = MakeExecutor(1, [&] {
    if (!started.HasBeenNotified()) started.Notify();
    go.WaitForNotification();
  });
  Answer answers[3];
  executor->Submit(MakeTask(answers[0], 0));
  started.WaitForNotification();
  executor->Submit(MakeTask(answers[1], 1));
  executor->Submit(MakeTask(answers[2], 2));
  EXPECT_EQ(Metric("sfmamba_queue_items", {{"model", "fake"}}), 2);
  EXPECT_EQ(Metric("sfmamba_queue_bytes", {{"model", "fake"}}), 2 * 192);
  go.Notify();
  EXPECT_EQ(answers[2].logit(), 2);
  EXPECT_EQ(Metric("sfmamba_queue_items", {{"model", "fake"}}), 0);
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
}  // namespace sfmamba
