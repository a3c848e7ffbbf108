#ifndef SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/batching/executor.h"
#include "server/observability/metrics.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {

// Answers each image with its first value as the only logit, and as the only
// number of its embedding; fails a batch that holds kPoison, telling its size,
// and answers kNotANumber with NaN.
constexpr float kPoison = -1;
constexpr float kNotANumber = -2;
// Takes all of the memory: of a batch of others, or even alone.
constexpr float kLarge = -3;
constexpr float kTooLarge = -4;
constexpr float kBreaksTheDevice = -5;      // From then on each Run fails.
constexpr float kForgotten = -7;            // The model gives no result for it.
constexpr float kEmbeddingNotANumber = -6;  // Its logit is finite.

constexpr int kTooManyImages = 99;  // More than a model can be prepared for.

class FakeModel : public model::VisionModel {
 public:
  struct Log {
    absl::Mutex mu;
    std::vector<int> sizes ABSL_GUARDED_BY(mu);
    int prepared ABSL_GUARDED_BY(mu) = 0;  // Of the last Prepare.
    model::ModelInput last
        ABSL_GUARDED_BY(mu);  // Of the last Run, the last image.
    std::vector<std::string> failures ABSL_GUARDED_BY(mu);  // Of the device.
  };

  // `before` is called at the start of each Run.
  FakeModel(Log* log, std::function<void()> before, model::VisionTask task,
            int slots)
      : log_(log), before_(std::move(before)), slots_(slots) {
    config_.image_size = 4;
    config_.task = task;
    config_.short_side = 8;
    config_.long_side = 16;
  }

  absl::StatusOr<std::vector<model::Result>> Run(
      absl::Span<const model::ModelInput> images,
      model::RunInfo* info) override {
    {
      absl::MutexLock lock(&log_->mu);
      log_->sizes.push_back(images.size());
      log_->last = images.back();
    }
    before_();
    std::vector<model::Result> results;
    for (const model::ModelInput& image : images) {
      const float value =
          image.pixels != nullptr ? image.pixels[0] : image.values[0];
      if (value == kPoison) {
        return absl::InternalError(
            absl::StrCat("poison in a batch of ", images.size()));
      }
      if (value == kLarge && images.size() > 1) {
        return absl::ResourceExhaustedError("out of memory");
      }
      if (value == kTooLarge) return absl::ResourceExhaustedError("the same");
      if (value == kBreaksTheDevice) broken_.store(true);
      if (broken_.load()) return absl::InternalError("no device");
      if (value == kForgotten) continue;
      if (image.height == 1) return absl::InvalidArgumentError("height 1");
      model::Classification classification;
      classification.logits = {value == kNotANumber
                                   ? std::numeric_limits<float>::quiet_NaN()
                                   : value};
      classification.embedding = {value == kEmbeddingNotANumber
                                      ? std::numeric_limits<float>::quiet_NaN()
                                      : value};
      results.push_back(std::move(classification));
    }
    if (info != nullptr) info->padded_images = images.size();
    return results;
  }
  absl::Status Prepare(int max_images, int /*min_images*/) override {
    if (max_images == kTooManyImages) {
      return absl::ResourceExhaustedError("out of memory");
    }
    absl::MutexLock lock(&log_->mu);
    log_->prepared = max_images;
    return absl::OkStatus();
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
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
  model::ModelConfig config_;
};

struct Answer {
  absl::Notification done;
  absl::StatusOr<model::Result> result;
  BatchInfo info;

  const absl::StatusOr<model::Result>& Wait() {
    WaitFor(done, "an image's answer");
    return result;
  }
  float logit() { return std::get<model::Classification>(*Wait()).logits[0]; }
  std::string message() { return std::string(Wait().status().message()); }
  std::string reason() {
    return server::GetErrorDetail(Wait().status()).reason;
  }
};

inline BatchTask MakeTask(Answer& answer, float value, int height = 4) {
  BatchTask task;
  task.image.height = task.bucket_height = height;
  task.image.width = task.bucket_width = 4;
  task.image.values.assign(3 * height * 4, value);
  task.done = [&answer](absl::StatusOr<model::Result> result,
                        const BatchInfo& info) {
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
      model::VisionTask task = model::VisionTask::kClassification,
      int slots = 1) {
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

  int prepared() {
    absl::MutexLock lock(&log_.mu);
    return log_.prepared;
  }

  // What the model was given last; its pixels are gone.
  model::ModelInput last() {
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
  observability::Metrics metrics_{observability::BuildInfo()};
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_
