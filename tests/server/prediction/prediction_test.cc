// The life of a prediction without any transport.

#include "server/prediction/prediction.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reasons.h"
#include "tests/server/fake_model.h"
#include "tests/server/running_server.h"

namespace sfmamba::prediction {
namespace {

using server::FakeModel;

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int64_t kAnswerBytes = 100;  // As the writer counts them.

// Keeps what a prediction writes. Thread-safe once the prediction is done.
class KeptResponse : public ResponseWriter {
 public:
  void Start(const std::string& model, int images) override {
    model_ = model;
    answers_.resize(images);
    errors_.resize(images);
  }
  int64_t SetAnswer(int i, Answer answer) override {
    answers_[i] = std::move(answer);
    return kAnswerBytes;
  }
  void SetError(int i, const absl::Status& error) override {
    errors_[i] = error;
  }
  void SetTiming(const Timing& timing) override { timing_ = timing; }
  int64_t Bytes() const override { return kAnswerBytes; }
  void Done(const absl::Status& status) override {
    status_ = status;
    ++times_done_;
    done_.Notify();
  }

  // The status of the request once it is done.
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
  std::optional<Timing> timing_;
  absl::Status status_;
  int times_done_ = 0;
  absl::Notification done_;
};

class PredictionTest : public testing::Test {
 protected:
  PredictionTest()
      : log_file_(std::tmpfile(), &std::fclose),
        log_(log_file_.get(), observability::LogLevel::kDebug,
             observability::LogFormat::kJson),
        metrics_(observability::BuildInfo()),
        decode_memory_(64 << 20),
        finish_pool_({"finish", 2, 64}),
        folder_(server::NewFolder("models")),
        decode_pool_({"decode", 1, 64}),
        without_deadline_(16) {
    server::WriteModel(folder_, "fake", "3",
                       "max_batch_size: 1 max_queue_delay {}");
    repository::ModelRepository::Options options;
    options.directory = folder_;
    repository_ = std::make_unique<repository::ModelRepository>(
        options,
        [this](const repository::ModelDirectory& directory,
               const repository::ModelRepository::CaptureFailed&)
            -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
          return std::make_unique<FakeModel>(directory.config, &gate_);
        },
        &metrics_, &log_);
    EXPECT_TRUE(repository_->Scan().ok());
    EXPECT_TRUE(repository_
                    ->LoadAll([](const repository::ModelVersion&) {},
                              [] { return false; })
                    .ok());
    environment_ =
        std::make_unique<PredictionEnvironment>(PredictionEnvironment{
            *repository_, decode_pool_, finish_pool_, decode_memory_, metrics_,
            log_, without_deadline_});
    environment_->clock = [this] { return Now(); };
  }

  // A request for `images` grey images.
  PredictionRequest Request(int images) {
    PredictionRequest request;
    request.images = images;
    request.image = [this](int i) -> absl::StatusOr<image::ImageSource> {
      ++translated_;
      if (i == malformed_) return server::InvalidField(".source", "bad");
      image::PixelBuffer pixels;
      pixels.width = pixels.height = FakeModel::kSide;
      pixels.data = grey_;
      image::ImageSource source;
      source.source = pixels;
      return source;
    };
    request.peer = "ipv4:127.0.0.1:1";
    return request;
  }

  absl::Time Now() {
    absl::MutexLock lock(&mu_);
    return base::SteadyNow() + advance_;
  }
  void AdvanceClock(absl::Duration duration) {
    absl::MutexLock lock(&mu_);
    advance_ += duration;
  }

  absl::Mutex mu_;
  absl::Duration advance_ ABSL_GUARDED_BY(mu_);
  const std::string grey_ =
      std::string(3 * FakeModel::kSide * FakeModel::kSide, 'x');
  int translated_ = 0;
  int malformed_ = -1;

  // In the order of a server's members: the pools and the repository drain
  // before what they use goes.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file_;
  observability::Logger log_;
  observability::Metrics metrics_;
  image::MemoryBudget decode_memory_;
  server::ThreadPool finish_pool_;
  const std::string folder_;
  server::Gate gate_;
  std::unique_ptr<repository::ModelRepository> repository_;
  server::ThreadPool decode_pool_;
  server::ClientSet without_deadline_;
  std::unique_ptr<PredictionEnvironment> environment_;
};

TEST_F(PredictionTest, AnswersEachImageThenIsDoneOnce) {
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(response.times_done_, 1);
  EXPECT_EQ(response.model_, "models/fake/versions/3");
  ASSERT_EQ(response.answers_.size(), 3u);
  for (const std::optional<Answer>& answer : response.answers_) {
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(std::get<ClassificationAnswer>(*answer).categories.size(), 5u);
  }
  EXPECT_FALSE(response.timing_.has_value());
}

TEST_F(PredictionTest, TimingIsWrittenOnRequest) {
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.options.include_timing = true;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  ASSERT_TRUE(response.timing_.has_value());
  EXPECT_EQ(response.timing_->batch.batch_size, 1);
  EXPECT_EQ(response.timing_->device, "fake");
}

TEST_F(PredictionTest, AServerThatStopsRefusesBeforeAnythingElse) {
  KeptResponse response;
  Prediction prediction(*environment_, Request(1), &response);
  prediction.Start(server::Draining("the server"));
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason, "DRAINING");
  EXPECT_EQ(translated_, 0);
  EXPECT_EQ(response.times_done_, 1);
}

TEST_F(PredictionTest, TooManyImagesAreRefusedUntranslated) {
  KeptResponse response;
  Prediction prediction(*environment_, Request(33'000'000), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason, "TOO_MANY_IMAGES");
  EXPECT_EQ(translated_, 0);
}

TEST_F(PredictionTest, WhatTheTransportCouldNotTranslateIsTheAnswer) {
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.malformed = server::InvalidField("options.resize", "got 99");
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).field, "options.resize");
}

TEST_F(PredictionTest, AnImageOfAnAtomicRequestFailsItWhole) {
  malformed_ = 1;
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).field, "images[1].source");
  EXPECT_TRUE(response.answers_.empty());
}

TEST_F(PredictionTest, WithPartialResultsTheOthersAreAnswered) {
  malformed_ = 1;
  KeptResponse response;
  PredictionRequest request = Request(3);
  request.options.allow_partial_results = true;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_TRUE(response.answers_[0].has_value());
  EXPECT_FALSE(response.answers_[1].has_value());
  EXPECT_EQ(response.Reason(1), "INVALID_FIELD");
  EXPECT_TRUE(response.answers_[2].has_value());
}

TEST_F(PredictionTest, ACancelledRequestIsDoneOnceAndCancelled) {
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, Request(4), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  prediction.Cancel();
  gate_.Open();
  EXPECT_EQ(response.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(response.times_done_, 1);
}

// The limit is on the sum over the images, and once it is reached the images
// that are left are not computed.
TEST_F(PredictionTest, AnswersTooLargeTogetherAbandonTheRest) {
  environment_->max_response_bytes = 2 * kAnswerBytes;
  KeptResponse response;
  PredictionRequest request = Request(16);
  request.options.allow_partial_results = true;
  Prediction prediction(*environment_, std::move(request), &response);
  gate_.Close();
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  gate_.Open();
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  int ok = 0, too_large = 0, dropped = 0;
  for (int i = 0; i < 16; ++i) {
    if (response.errors_[i].ok()) ++ok;
    if (response.Reason(i) == "RESPONSE_TOO_LARGE") ++too_large;
    if (response.Reason(i) == "CANCELLED") ++dropped;
  }
  EXPECT_EQ(ok, 2);
  EXPECT_GE(too_large, 1);
  EXPECT_EQ(too_large + dropped, 14);
}

TEST_F(PredictionTest, AWaitThatEndsDuringInferenceStillAnswers) {
  gate_.Close();
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.options.max_queue_wait = absl::Seconds(5);
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  AdvanceClock(absl::Seconds(10));  // Not beyond the deadline of 30 s.
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(PredictionTest, ADeadlineThatPassesDuringInferenceDoesNot) {
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, Request(1), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  AdvanceClock(absl::Seconds(31));
  gate_.Open();
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason, "EXPIRED_IN_QUEUE");
}

}  // namespace
}  // namespace sfmamba::prediction
