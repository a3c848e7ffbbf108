#ifndef SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
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
#include "model/execution_context.h"
#include "model/vision_model.h"
#include "server/batching/executor.h"
#include "server/errors/error.h"
#include "server/observability/metrics.h"
#include "tests/testing/patience.h"

namespace sfmamba::batching {

// The fake model answers each image with the image's first value. This value is
// the only logit and the only embedding value. The constants below are values
// with a special effect. kPoison makes the batch fail, with the batch size in
// the message. The answer to kNotANumber is NaN.
constexpr float kPoison = -1;
constexpr float kNotANumber = -2;
// These images run out of memory. kLarge fails only in a batch with other
// images, and kTooLarge fails even alone.
constexpr float kLarge = -3;
constexpr float kTooLarge = -4;
// From this image on, every Run() fails.
constexpr float kBreaksTheDevice = -5;
// The model gives no result for this image.
constexpr float kForgotten = -7;
// The logit of this image is finite, but its embedding is not.
constexpr float kEmbeddingNotANumber = -6;

constexpr int kTooManyImages = 99;  // Prepare() fails for this many images.

class FakeModel : public model::VisionModel {
 public:
  struct Log {
    absl::Mutex mu;
    std::vector<int> sizes ABSL_GUARDED_BY(mu);
    std::vector<int> prepared ABSL_GUARDED_BY(mu);  // Batch sizes, by context.
    model::ModelInput last
        ABSL_GUARDED_BY(mu);  // The last image of the last Run.
    std::vector<std::string> failures
        ABSL_GUARDED_BY(mu);                      // Errors of the device.
    int64_t input_bytes ABSL_GUARDED_BY(mu) = 0;  // Bytes allocated for inputs.
  };
  struct Options {
    model::VisionTask task = model::VisionTask::kClassification;
    int contexts = 1;
    // True if all contexts share one device.
    bool one_device = true;
    // The name of the device. If each context has its own device, the name of
    // device n is "<name>:<n>".
    std::string device = "fake";
    absl::Status make_context;  // The error of MakeContext(), or OK.
    int padding = 0;            // The padding images of each batch.
    // False if the answer to a black uint8 image is NaN.
    bool black_is_finite = true;
    // `before_prepare` is called at the start of each Prepare(), and `before`
    // at the start of each Run().
    std::function<void()> before_prepare = [] {};
    std::function<void()> before = [] {};
    // If true, each image is answered before the next image runs. Dense models
    // (detectors and segmenters) do this on a CPU. If false, all images are
    // answered at the end of the batch.
    bool one_by_one = false;
    std::function<void(float value)> before_image = [](float) {};
  };

  FakeModel(Log* log, Options options)
      : log_(log), options_(std::move(options)) {
    config_.image_size = 4;
    config_.task = options_.task;
    config_.short_side = 8;
    config_.long_side = 16;
  }

  std::shared_ptr<uint8_t> AllocateInputs(int64_t bytes) const override {
    absl::MutexLock lock(&log_->mu);
    log_->input_bytes = bytes;
    return VisionModel::AllocateInputs(bytes);
  }
  int contexts() const override { return options_.contexts; }
  std::string context_device(int index) const override {
    return options_.one_device ? options_.device
                               : absl::StrCat(options_.device, ":", index);
  }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    if (!options_.make_context.ok()) return options_.make_context;
    return std::make_unique<Context>(*this);
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return "fake"; }
  int fold_factor(int images) const override { return 10 * images; }
  absl::Status health() const override {
    return broken_.load() ? absl::InternalError("device 0: broken")
                          : absl::OkStatus();
  }

 private:
  class Context : public model::ExecutionContext {
   public:
    explicit Context(FakeModel& model) : model_(model) {}

    absl::Status Run(absl::Span<const model::ModelInput> images,
                     model::RunInfo* info, Done done) override {
      {
        absl::MutexLock lock(&model_.log_->mu);
        model_.log_->sizes.push_back(images.size());
        model_.log_->last = images.back();
      }
      model_.options_.before();
      *info = {static_cast<int>(images.size()) + model_.options_.padding, {}};
      std::vector<model::Result> results;
      for (const model::ModelInput& image : images) {
        if (image.values != nullptr && image.values[0] == kForgotten) continue;
        absl::StatusOr<model::Result> result =
            model_.Compute(image, images.size());
        if (!result.ok()) return result.status();
        if (model_.options_.one_by_one) {
          done(*std::move(result));
        } else {
          results.push_back(*std::move(result));
        }
      }
      for (model::Result& result : results) done(std::move(result));
      return absl::OkStatus();
    }

    absl::Status Prepare(int /*min_images*/, int max_images) override {
      model_.options_.before_prepare();
      absl::MutexLock lock(&model_.log_->mu);
      model_.log_->prepared.push_back(max_images);
      return max_images >= kTooManyImages
                 ? absl::ResourceExhaustedError("out of memory")
                 : absl::OkStatus();
    }

   private:
    FakeModel& model_;
  };

  absl::StatusOr<model::Result> Compute(const model::ModelInput& image,
                                        int batch) {
    const float value =
        image.pixels != nullptr ? image.pixels[0] : image.values[0];
    options_.before_image(value);
    const bool is_number =
        value != kNotANumber &&
        (image.pixels == nullptr || value != 0 || options_.black_is_finite);
    if (value == kPoison) {
      return absl::InternalError(absl::StrCat("poison in a batch of ", batch));
    }
    if (value == kLarge && batch > 1) {
      return absl::ResourceExhaustedError("out of memory");
    }
    if (value == kTooLarge) return absl::ResourceExhaustedError("the same");
    if (value == kBreaksTheDevice) broken_.store(true);
    if (broken_.load()) return absl::InternalError("no device");
    if (image.height == 1) return absl::InvalidArgumentError("height 1");
    model::Classification classification;
    classification.logits = {
        is_number ? value : std::numeric_limits<float>::quiet_NaN()};
    classification.embedding = {value == kEmbeddingNotANumber
                                    ? std::numeric_limits<float>::quiet_NaN()
                                    : value};
    return classification;
  }

  Log* log_;
  const Options options_;
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
  task.key = {height, 4, ImageType::kFloat32};
  task.image.height = height;
  task.image.width = 4;
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
  ExecutorTest() { options_.batch.mode = BatchMode::kThroughput; }

  // Makes an executor. Its batches leave only when they have `max_batch_size`
  // images.
  std::unique_ptr<Executor> MakeExecutor(int max_batch_size,
                                         FakeModel::Options model = {}) {
    Executor::Options options = options_;
    options.name = "fake";
    options.version = "1";
    options.devices = devices_;
    options.batch.max_batch_size = max_batch_size;
    options.batch.max_queue_delay = absl::Hours(1);
    options.device_failed = [this](const absl::Status& status) {
      absl::MutexLock lock(&log_.mu);
      log_.failures.push_back(std::string(status.message()));
    };
    return std::make_unique<Executor>(
        options, std::make_unique<FakeModel>(&log_, std::move(model)),
        &metrics_);
  }
  static FakeModel::Options Before(std::function<void()> before) {
    FakeModel::Options options;
    options.before = std::move(before);
    return options;
  }

  std::vector<int> sizes() {
    absl::MutexLock lock(&log_.mu);
    return log_.sizes;
  }

  std::vector<int> prepared() {
    absl::MutexLock lock(&log_.mu);
    return log_.prepared;
  }

  int64_t input_bytes() {
    absl::MutexLock lock(&log_.mu);
    return log_.input_bytes;
  }

  // Returns the model's last input, whose pixels are already freed.
  model::ModelInput last() {
    absl::MutexLock lock(&log_.mu);
    return log_.last;
  }

  // Returns the value of the metric `name` with the labels `labels`. For a
  // histogram, returns the sum. Returns -1 if there is no such metric.
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
        if (matches) {
          return metric.counter.value + metric.gauge.value +
                 metric.histogram.sample_sum;
        }
      }
    }
    return -1;
  }

  Executor::Options options_;  // Options that tests set.
  FakeModel::Log log_;
  const std::shared_ptr<Devices> devices_ = std::make_shared<Devices>();
  observability::Metrics metrics_{observability::BuildInfo()};
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_EXECUTOR_FIXTURE_H_
