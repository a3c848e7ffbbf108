// The life of a prediction without any transport.

#include "server/prediction/prediction.h"

#include <pthread.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/reasons.h"
#include "server/batching/executor.h"
#include "tests/server/fake_model.h"
#include "tests/server/running_server.h"
#include "tests/testing/patience.h"

namespace sfmamba::prediction {
namespace {

using server::FakeModel;

constexpr int kDecodeItems = 40;
constexpr int kInputBytes = 3 * FakeModel::kSide * FakeModel::kSide;
constexpr int kQueueBytes = 36 * kInputBytes;
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
        finish_pool_({"finish", 2}),
        folder_(server::NewFolder("models")),
        decode_pool_({"decode", 1}),
        without_deadline_(16) {
    server::WriteModel(folder_, "fake", "3",
                       absl::StrCat("max_batch_size: 1 max_queue_delay {} "
                                    "max_queue_bytes: ",
                                    kQueueBytes));
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
            *repository_, decode_pool_, decode_room_, finish_pool_,
            finish_room_, metrics_, log_, without_deadline_});
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

  // The same for grey pictures of so many pixels.
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

  // The clock of predictions. A decode thread asks it before and after it
  // decodes an image.
  absl::Time Now() {
    char thread[16] = "";
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    absl::MutexLock lock(&mu_);
    if (thread == throwing_thread_) throw std::runtime_error("broken clock");
    if (thread == std::string("decode")) {
      const auto may = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return decode_steps_ > 0;
      };
      mu_.Await(absl::Condition(&may));
      --decode_steps_;
    }
    return base::SteadyNow() + advance_;
  }
  void AdvanceClock(absl::Duration duration) {
    absl::MutexLock lock(&mu_);
    advance_ += duration;
  }

  // Lets decode threads decode so many images more; `kAll` for all.
  static constexpr int kAll = 1 << 20;
  void MayDecode(int images) {
    absl::MutexLock lock(&mu_);
    decode_steps_ = 2 * images;
  }
  void ThrowOn(const std::string& thread) {
    absl::MutexLock lock(&mu_);
    throwing_thread_ = thread;
  }
  batching::Executor& executor() {
    return *(*repository_->List().front()->Loaded())->executor;
  }

  absl::Mutex mu_;
  absl::Duration advance_ ABSL_GUARDED_BY(mu_);
  int decode_steps_ ABSL_GUARDED_BY(mu_) = 2 * kAll;
  std::string throwing_thread_ ABSL_GUARDED_BY(mu_);
  std::string grey_picture_;
  const std::string grey_ =
      std::string(3 * FakeModel::kSide * FakeModel::kSide, 'x');
  int translated_ = 0;
  int malformed_ = -1;

  // In the order of a server's members: the pools and the repository drain
  // before what they use goes.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file_;
  observability::Logger log_;
  observability::Metrics metrics_;
  batching::QueueRoom decode_room_{kDecodeItems, 1 << 30, absl::Seconds(1),
                                   "decode"};
  batching::QueueRoom finish_room_{64, 1 << 30, absl::Seconds(1), "answer"};
  server::FairPool finish_pool_;
  const std::string folder_;
  server::Gate gate_;
  std::unique_ptr<repository::ModelRepository> repository_;
  server::FairPool decode_pool_;
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

// ---- Fair pools ----

// 64 pictures of 20 megapixels in the test of the pool; here the real steps.
TEST_F(PredictionTest, ASmallRequestWaitsForOnePictureOfALargeOne) {
  MayDecode(0);
  KeptResponse large_response, small_response;
  Prediction large(*environment_, LargeRequest(35, 2000, 2000),
                   &large_response);
  large.Start(absl::OkStatus());
  WaitUntil([this] { return decode_pool_.busy() == 1; },
            "the first picture on the decode thread");
  Prediction small(*environment_, Request(1), &small_response);
  small.Start(absl::OkStatus());
  MayDecode(2);  // The one that was begun, and the small one.
  EXPECT_EQ(small_response.Wait(), absl::OkStatus());
  EXPECT_FALSE(large_response.done_.HasBeenNotified());
  large.Cancel();
  MayDecode(kAll);
  EXPECT_EQ(large_response.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PredictionTest, OfSmallRequestsTheOneOfHighPriorityIsDecodedFirst) {
  MayDecode(0);
  KeptResponse first_response, low_response, high_response;
  Prediction first(*environment_, Request(1), &first_response);
  first.Start(absl::OkStatus());
  WaitUntil([this] { return decode_pool_.busy() == 1; },
            "the first image on the decode thread");
  PredictionRequest low_request = Request(1), high_request = Request(1);
  low_request.options.priority = server::Priority::kLow;
  high_request.options.priority = server::Priority::kHigh;
  Prediction low(*environment_, std::move(low_request), &low_response);
  Prediction high(*environment_, std::move(high_request), &high_response);
  low.Start(absl::OkStatus());
  high.Start(absl::OkStatus());
  MayDecode(2);
  EXPECT_EQ(first_response.Wait(), absl::OkStatus());
  EXPECT_EQ(high_response.Wait(), absl::OkStatus());
  EXPECT_FALSE(low_response.done_.HasBeenNotified());
  MayDecode(kAll);
  EXPECT_EQ(low_response.Wait(), absl::OkStatus());
}

// ---- Admission ----

TEST_F(PredictionTest, AFullDecodeQueueRefusesTheWholeRequestAndHoldsNothing) {
  MayDecode(0);
  KeptResponse running_response, refused_response;
  Prediction running(*environment_, Request(30), &running_response);
  running.Start(absl::OkStatus());
  WaitUntil([this] { return decode_pool_.busy() == 1; },
            "the first image on the decode thread");
  const auto others = decode_room_.Take(8, 0);  // Of other models.
  ASSERT_TRUE(others.ok());
  PredictionRequest request = Request(5);  // Of 3 places that are left.
  request.options.allow_partial_results = true;
  Prediction refused(*environment_, std::move(request), &refused_response);
  refused.Start(absl::OkStatus());
  const absl::Status status = refused_response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("the decode queue holds 37 of at most 40"));
  EXPECT_TRUE(executor().Reserve(6, 6 * kInputBytes).ok())
      << "the batch queue still holds places of the refused request";
  MayDecode(kAll);
  EXPECT_EQ(running_response.Wait(), absl::OkStatus());
  EXPECT_TRUE(decode_room_.Take(kDecodeItems - 8, 0).ok());
}

TEST_F(PredictionTest, ARequestThatCanNeverFitIsNotToldToRetry) {
  KeptResponse many_response, much_response;
  Prediction many(*environment_, Request(kDecodeItems + 1), &many_response);
  many.Start(absl::OkStatus());
  const absl::Status too_many = many_response.Wait();
  EXPECT_EQ(too_many.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(too_many).reason, "TOO_MANY_IMAGES");
  EXPECT_EQ(too_many.message(), "got 41 images, expected 1 to 40");

  Prediction much(*environment_, Request(37), &much_response);
  much.Start(absl::OkStatus());
  const absl::Status too_much = much_response.Wait();
  EXPECT_EQ(too_much.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(too_much).reason, "INPUTS_TOO_LARGE");
  EXPECT_EQ(server::GetErrorDetail(too_much).retry_after,
            absl::InfiniteDuration());
  EXPECT_THAT(
      std::string(too_much.message()),
      testing::HasSubstr(absl::StrCat(
          "take ", 37 * kInputBytes,
          " bytes as inputs and results, expected at most ", kQueueBytes)));
}

// ---- Exceptions ----

TEST_F(PredictionTest, AnExceptionOnAPoolsThreadIsAnInternalError) {
  for (const char* thread : {"decode", "finish"}) {
    ThrowOn(thread);
    KeptResponse response;
    Prediction prediction(*environment_, Request(3), &response);
    prediction.Start(absl::OkStatus());
    EXPECT_EQ(response.Wait().code(), absl::StatusCode::kInternal) << thread;
    EXPECT_EQ(response.times_done_, 1);
  }
  ThrowOn("");
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait(), absl::OkStatus()) << "the threads live on";
}

}  // namespace
}  // namespace sfmamba::prediction
