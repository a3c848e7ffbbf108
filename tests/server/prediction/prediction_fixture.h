#ifndef SFMAMBA_TESTS_SERVER_PREDICTION_PREDICTION_FIXTURE_H_
#define SFMAMBA_TESTS_SERVER_PREDICTION_PREDICTION_FIXTURE_H_

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/batching/executor.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/prediction/prediction.h"
#include "tests/server/fake_model.h"
#include "tests/server/observability/metric_values.h"
#include "tests/server/running_server.h"
#include "tests/testing/fake_context.h"
#include "tests/testing/patience.h"

namespace sfmamba::prediction {

inline constexpr int kDecodeItems = 40;
inline constexpr int kInputBytes =
    3 * server::FakeModel::kSide * server::FakeModel::kSide;
inline constexpr int kQueueBytes = 36 * kInputBytes;
// KeptResponse reports this number of bytes for each image.
inline constexpr int64_t kAnswerBytes = 100;

// Stores what a prediction writes. Thread-safe once the prediction is done.
class KeptResponse : public ResponseWriter {
 public:
  void Start(const std::string& model, int images) override {
    model_ = model;
    answers_.resize(images);
    errors_.resize(images);
  }
  int64_t SetAnswer(int i, Answer answer) override {
    answers_[i] = std::move(answer);
    return answer_bytes_;
  }
  void ReleaseRequest() override {
    EXPECT_EQ(times_done_, 0);
    if (++times_released_ == 1) released_.Notify();
  }
  void SetError(int i, const absl::Status& error) override {
    errors_[i] = error;
  }
  void SetTiming(const v1::Timing& timing) override { timing_ = timing; }
  int64_t Bytes() const override { return kAnswerBytes; }
  void Done(const absl::Status& status) override {
    status_ = status;
    ++times_done_;
    done_.Notify();
  }

  // Waits until the request is done and returns its status.
  absl::Status Wait() {
    if (!done_.WaitForNotificationWithTimeout(kPatience)) {
      return absl::UnknownError("Done() was not called");
    }
    return status_;
  }
  std::string Reason(int i) const {
    return server::GetErrorDetail(errors_[i]).reason;
  }

  std::string model_;
  std::vector<std::optional<Answer>> answers_;
  std::vector<absl::Status> errors_;
  std::optional<v1::Timing> timing_;
  absl::Status status_;
  int times_done_ = 0;
  std::atomic<int> times_released_{0};
  absl::Notification released_;
  int64_t answer_bytes_ = kAnswerBytes;  // Reported for each image.
  absl::Notification done_;
};

// Controls how many steps the threads under test may take. Thread-safe.
class Steps {
 public:
  static constexpr int kAll = 1 << 20;

  // Waits until the calling thread may take a step. The code under test calls
  // this.
  void Take() {
    absl::MutexLock lock(&mu_);
    const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return allowed_ > 0;
    };
    TimeLimit limit("the test to allow a step", kTestPatience);
    mu_.Await(absl::Condition(&may));
    --allowed_;
    ++taken_;
  }
  // Allows exactly `steps` more steps.
  void Allow(int steps) {
    absl::MutexLock lock(&mu_);
    allowed_ = steps;
  }
  int taken() {
    absl::MutexLock lock(&mu_);
    return taken_;
  }
  // From now on, SteppedMask::bounds() throws an exception.
  void Break() { broken_ = true; }
  bool broken() const { return broken_; }

 private:
  std::atomic<bool> broken_{false};
  absl::Mutex mu_;
  int allowed_ ABSL_GUARDED_BY(mu_) = kAll;
  int taken_ ABSL_GUARDED_BY(mu_) = 0;
};

// A mask that takes a step when its columns are read. In each of its 256
// columns, every other pixel is set. Encoding one such mask is exactly one
// encoding step.
class SteppedMask final : public model::InstanceMask {
 public:
  static constexpr int kColumns = 256;

  SteppedMask(int height, Steps* steps) : height_(height), steps_(*steps) {}

  Bounds bounds() const override {
    if (steps_.broken()) throw std::runtime_error("broken mask");
    return {0, 0, kColumns, height_};
  }
  void AddRows(int, int, base::LineRuns*) const override {}
  void AddColumns(int begin, int end, base::LineRuns* runs) const override {
    EXPECT_EQ(end - begin, kColumns);
    steps_.Take();
    for (int x = begin; x < end; ++x) {
      for (int y = 0; y < height_; ++y) runs->edges.push_back(y);
      runs->line_ends.push_back(runs->edges.size());
    }
  }

 private:
  const int height_;
  Steps& steps_;
};

// A detector that finds the whole picture 100 times, or as often as the request
// allows. The picture's height must be even. Each batch waits at `gate`.
// Encoding the mask of a detection takes one of `steps`.
class MaskModel final : public server::FakeModel {
 public:
  static constexpr int kMasks = 100;

  MaskModel(const model::ModelConfig& config, server::Gate* gate, Steps* steps)
      : server::FakeModel(config, gate), gate_(*gate), steps_(*steps) {}

  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images) {
          gate_.Pass();
          return Find(images);
        });
  }

 private:
  std::vector<model::Result> Find(absl::Span<const model::ModelInput> images) {
    std::vector<model::Result> results;
    for (const model::ModelInput& image : images) {
      const int height = image.original_height, width = image.original_width;
      model::Detections found;
      const int most = model::OptionsOf<model::DetectionOptions>(image.options)
                           .max_detections;
      for (int i = 0; i < (most > 0 ? most : kMasks); ++i) {
        model::Detection& one = found.detections.emplace_back();
        one.box = {0, 0, static_cast<float>(width), static_cast<float>(height)};
        one.score = 0.5f;
        one.mask = std::make_shared<SteppedMask>(height, &steps_);
      }
      results.push_back(std::move(found));
    }
    return results;
  }

  server::Gate& gate_;
  Steps& steps_;
};

// Returns the options of the server's finish pool, but with one thread.
inline server::FairPool::Options FinishOptions() {
  server::FairPool::Options options;
  options.name = "finish";
  options.round = absl::Milliseconds(1);
  return options;
}

class PredictionTest : public testing::Test {
 protected:
  PredictionTest()
      : log_file_(std::tmpfile(), &std::fclose),
        log_(log_file_.get(), observability::LogLevel::kDebug,
             observability::LogFormat::kJson),
        metrics_(observability::BuildInfo()),
        finish_pool_(FinishOptions()),
        folder_(server::NewFolder("models")),
        decode_pool_({"decode", 1}),
        without_deadline_(16) {
    server::WriteModel(folder_, "fake", "3",
                       absl::StrCat("max_batch_size: 1 max_queue_delay {} "
                                    "max_queue_bytes: ",
                                    kQueueBytes));
    server::WriteModel(folder_, "masks", "1", "max_queue_delay {}",
                       model::VisionTask::kDetection);
    server::WriteModel(folder_, "maps", "1", "max_queue_delay {}",
                       model::VisionTask::kSegmentation);
    repository::ModelRepository::Options options;
    options.directory = folder_;
    options.explicit_control = true;  // Tests may unload models.
    repository_ = std::make_unique<repository::ModelRepository>(
        options,
        [this](const repository::ModelDirectory& directory,
               const repository::ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          if (directory.config.task == model::VisionTask::kDetection) {
            return std::make_unique<MaskModel>(directory.config, &mask_gate_,
                                               &masks_);
          }
          return std::make_unique<server::FakeModel>(directory.config, &gate_);
        },
        &metrics_, &log_);
    EXPECT_TRUE(repository_->Scan().ok());
    EXPECT_TRUE(repository_
                    ->LoadAll([](const repository::ModelVersion&) {},
                              [] { return false; })
                    .ok());
    for (const auto& version : repository_->List()) {
      const auto model = version->Loaded();
      if (model.ok()) idle_owners_[model->get()] = model->use_count();
    }
    environment_ =
        std::make_unique<PredictionEnvironment>(PredictionEnvironment{
            *repository_, decode_pool_, decode_room_, finish_pool_,
            finish_room_, memory_, costs_, metrics_, log_, without_deadline_});
    environment_->clock = [this] { return Now(); };
  }
  // Waits until the models are idle. After its answer, a request may hold its
  // model for a moment on a thread of this model. If this request were the last
  // owner, it would destroy the model there. The thread would then have to join
  // itself.
  ~PredictionTest() override {
    for (const auto& version : repository_->List()) {
      const auto model = version->Loaded();
      if (!model.ok()) continue;
      const auto idle = idle_owners_.find(model->get());
      if (idle == idle_owners_.end()) continue;
      WaitUntil([&] { return model->use_count() <= idle->second; },
                "the last request to release its model");
    }
  }

  // Returns a request for `images` grey images.
  PredictionRequest Request(int images) {
    PredictionRequest request;
    request.images = images;
    request.image = [this](int i) -> absl::StatusOr<image::ImageSource> {
      ++translated_;
      if (i == malformed_) return server::InvalidField(".source", "bad");
      image::PixelBuffer pixels;
      pixels.width = pixels.height = server::FakeModel::kSide;
      pixels.data = grey_;
      image::ImageSource source;
      source.source = pixels;
      return source;
    };
    request.call.peer = "ipv4:127.0.0.1:1";
    return request;
  }
  // Makes a request for `images` pictures with these RGB pixels. The pixels
  // must outlive the request.
  PredictionRequest PixelRequest(int images, const std::string& rgb, int width,
                                 int height) {
    PredictionRequest request = Request(images);
    request.image = [=, &rgb](int) -> absl::StatusOr<image::ImageSource> {
      image::PixelBuffer pixels;
      pixels.width = width;
      pixels.height = height;
      pixels.data = rgb;
      image::ImageSource source;
      source.source = pixels;
      return source;
    };
    return request;
  }

  // Starts a prediction of several images in batches of one. Each batch but the
  // last ends while another image waits.
  void StartBusy(Prediction* prediction) {
    gate_.Close();
    prediction->Start(absl::OkStatus());
    WaitUntil(
        [this] { return decode_pool_.queued() + decode_pool_.busy() == 0; },
        "all images to be submitted");
    gate_.Open();
  }

  // Makes a request with grey pictures of `height` x `width` pixels.
  PredictionRequest LargeRequest(int images, int height, int width) {
    PredictionRequest request = Request(images);
    grey_picture_.assign(size_t{1} * height * width, 'x');
    request.image = [=](int) -> absl::StatusOr<image::ImageSource> {
      image::PixelBuffer pixels;
      pixels.height = height;
      pixels.width = width;
      pixels.format = image::PixelBuffer::Format::kGray8;
      pixels.data = grey_picture_;
      image::ImageSource source;
      source.source = pixels;
      return source;
    };
    return request;
  }

  // Returns a metric's value, or 0 if there is no such series.
  double Value(const std::string& series) {
    return observability::Values(metrics_)[series];
  }
  // Returns the number of requests of `method` counted for `model`. An empty
  // `model` means requests that are counted for no model, such as LoadModel.
  double Requests(const std::string& method, const std::string& model) {
    double requests = 0;
    for (const auto& [series, value] : observability::Values(metrics_)) {
      if (absl::StartsWith(series, "sfmamba_requests_total{") &&
          absl::StrContains(series, absl::StrCat(",method=", method,
                                                 ",model=", model, ","))) {
        requests += value;
      }
    }
    return requests;
  }

  // Returns everything logged so far.
  std::string Log() {
    EXPECT_TRUE(log_.Flush(kPatience));
    std::string text(1 << 20, '\0');
    // The log writes at the file's position, which pread() does not change.
    const ssize_t size =
        pread(fileno(log_file_.get()), text.data(), text.size(), 0);
    text.resize(std::max<ssize_t>(0, size));
    return text;
  }

  // The clock of predictions. On a decode thread, each call takes a step of
  // `decoding_`. A decode thread calls this before, during and after decoding
  // an image.
  absl::Time Now() {
    char thread[16] = "";
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    if (thread == std::string("decode")) decoding_.Take();
    absl::MutexLock lock(&mu_);
    if (thread == throwing_thread_) throw std::runtime_error("broken clock");
    return base::SteadyNow() + advance_;
  }
  void AdvanceClock(absl::Duration duration) {
    absl::MutexLock lock(&mu_);
    advance_ += duration;
  }

  void MayDecode(int images) { decoding_.Allow(3 * images); }
  void ThrowOn(const std::string& thread) {
    absl::MutexLock lock(&mu_);
    throwing_thread_ = thread;
  }
  repository::LoadedModel& model() {
    return **repository_->List().front()->Loaded();
  }
  batching::Executor& executor() { return *model().executor; }

  Steps decoding_;  // A small image takes three steps.
  Steps masks_;
  absl::Mutex mu_;
  absl::Duration advance_ ABSL_GUARDED_BY(mu_);
  std::string throwing_thread_ ABSL_GUARDED_BY(mu_);
  std::string grey_picture_;
  const std::string grey_ =
      std::string(3 * server::FakeModel::kSide * server::FakeModel::kSide, 'x');
  int translated_ = 0;
  int malformed_ = -1;

  // The members have the order of a server's members. The pools and the
  // repository drain before the members they use are destroyed.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file_;
  observability::Logger log_;
  observability::Metrics metrics_;
  batching::QueueRoom decode_room_{{kDecodeItems, 1 << 30}, "decode"};
  batching::QueueRoom finish_room_{{64, 1 << 30}, "answer"};
  server::MemoryBudget memory_{512 << 20, 192 << 20};
  server::FairPool finish_pool_;
  const std::string folder_;
  server::Gate gate_;
  server::Gate mask_gate_;  // Passed by batches of "masks".
  std::unique_ptr<repository::ModelRepository> repository_;
  // The number of shared_ptrs to each model while no request uses the model.
  // The number includes the local variable through which it was read.
  std::map<const repository::LoadedModel*, long> idle_owners_;
  server::FairPool decode_pool_;
  server::ClientSet without_deadline_;
  ExpectedCosts costs_;
  std::unique_ptr<PredictionEnvironment> environment_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_TESTS_SERVER_PREDICTION_PREDICTION_FIXTURE_H_
