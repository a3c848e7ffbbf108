// Tests predictions from their start to their end, without a transport.

#include "server/prediction/prediction.h"

#include <string>
#include <utility>
#include <variant>

#include "base/proto_duration.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/server_config.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

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
    const auto& result = std::get<v1::ClassifyResult>(answer->result);
    EXPECT_EQ(result.categories_size(), 5);
  }
  EXPECT_FALSE(response.timing_.has_value());
}

TEST_F(PredictionTest, LimitsAreByDefaultThoseOfTheSettings) {
  const v1::ServerConfig config = server::WithDefaults({});
  EXPECT_EQ(environment_->max_response_bytes, config.max_message_bytes());
  EXPECT_EQ(environment_->default_deadline,
            base::FromProto(config.default_deadline()));
  EXPECT_EQ(environment_->max_deadline, base::FromProto(config.max_deadline()));
  const RequestLimits& limits = environment_->limits;
  EXPECT_EQ(limits.max_images, config.max_images_per_request());
  EXPECT_EQ(limits.image.max_bytes, config.max_image_bytes());
  EXPECT_EQ(limits.image.max_pixels, config.max_image_pixels());
  EXPECT_EQ(limits.image.max_side, config.max_image_side());
  EXPECT_EQ(limits.image.max_decode_time,
            base::FromProto(config.decode_timeout()));
}

TEST_F(PredictionTest, TimingIsWrittenOnRequest) {
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.options.include_timing = true;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  ASSERT_TRUE(response.timing_.has_value());
  EXPECT_EQ(response.timing_->batch_size(), 1);
  EXPECT_EQ(response.timing_->device(), "fake");
}

TEST_F(PredictionTest, LearnsHowLongImagesTakeToDecode) {
  const std::string grey(3 * 1200 * 1200, '\x7f');
  ImageFacts facts;
  facts.format = "pixels";
  facts.pixels = 1200 * 1200;
  const absl::Duration before = costs_.Decode(facts);
  PredictionRequest request = Request(1);
  request.image = [&grey](int) -> absl::StatusOr<image::ImageSource> {
    image::PixelBuffer pixels;
    pixels.width = pixels.height = 1200;
    pixels.data = grey;
    image::ImageSource source;
    source.source = pixels;
    return source;
  };
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_NE(costs_.Decode(facts), before);
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
  const absl::Status status = response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "TOO_MANY_IMAGES");
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

// The call succeeds, but a client that gets no result does not count as served.
TEST_F(PredictionTest, APartialAnswerWithoutAnyImageDoesNotCountAsOk) {
  malformed_ = 0;
  for (const bool validate_only : {false, true}) {
    KeptResponse response;
    PredictionRequest request = Request(1);
    request.options.allow_partial_results = true;
    request.options.validate_only = validate_only;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    EXPECT_EQ(response.Wait(), absl::OkStatus());
    EXPECT_EQ(response.Reason(0), "INVALID_FIELD");
  }
  const std::string labels = ",method=Classify,model=fake,reason=";
  EXPECT_EQ(Value("sfmamba_requests_total{code=INVALID_ARGUMENT" + labels +
                  "INVALID_FIELD,version=3}"),
            2);
  EXPECT_EQ(Value("sfmamba_requests_total{code=OK" + labels + ",version=3}"),
            0);
}

TEST_F(PredictionTest, OneAnsweredImageMakesAPartialAnswerOk) {
  malformed_ = 0;
  KeptResponse response;
  PredictionRequest request = Request(2);
  request.options.allow_partial_results = true;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(Value("sfmamba_requests_total{code=OK,method=Classify,model=fake,"
                  "reason=,version=3}"),
            1);
}

TEST_F(PredictionTest, ImagesThatExpireLeaveTheStagesTheyReached) {
  gate_.Close();
  KeptResponse running, late;
  Prediction first(*environment_, Request(1), &running);
  first.Start(absl::OkStatus());
  gate_.WaitForBatch();
  PredictionRequest request = Request(1);
  request.options.max_queue_wait = absl::Milliseconds(30);
  Prediction second(*environment_, std::move(request), &late);
  second.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(late.Wait()).reason, "EXPIRED_IN_QUEUE");
  gate_.Open();
  EXPECT_EQ(running.Wait(), absl::OkStatus());
  const std::string stages =
      "sfmamba_stage_duration_seconds{model=fake,outcome=";
  for (const char* stage : {"decode", "preprocess", "queue"}) {
    EXPECT_EQ(Value(stages + "expired,stage=" + stage + "}"), 1) << stage;
  }
  EXPECT_EQ(Value(stages + "expired,stage=inference}"), 0);
  for (const char* stage :
       {"decode", "preprocess", "queue", "inference", "postprocess"}) {
    EXPECT_EQ(Value(stages + "ok,stage=" + stage + "}"), 1) << stage;
  }
}

TEST_F(PredictionTest, TheTimingHasTheLongestWaitOfAllImages) {
  constexpr absl::Duration kWait = absl::Milliseconds(50);
  gate_.Close();
  KeptResponse response;
  PredictionRequest request = Request(3);  // Each image is a separate batch.
  request.options.include_timing = true;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  WaitUntil(
      [this] {
        return Value("sfmamba_queue_items{model=fake,priority=normal}") == 2;
      },
      "two images in the queue");
  const absl::Time now = base::SteadyNow();
  WaitUntil([now] { return base::SteadyNow() >= now + kWait; }, "their wait");
  gate_.Open();
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  ASSERT_TRUE(response.timing_.has_value());
  // The first image has the longest inference and did not wait. The reported
  // wait is the longest of all images, so it comes from another image.
  EXPECT_GE(base::FromProto(response.timing_->queue()), kWait);
}

TEST_F(PredictionTest, AnImageThatIsNotDecodedLeavesItsDecodeTime) {
  std::string png = server::EncodePng(64, 64, {}, std::string(64 * 64 * 3, 1));
  png.resize(png.size() / 2);  // The PNG's header is complete.
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.image = [&png](int) -> absl::StatusOr<image::ImageSource> {
    image::ImageSource source;
    source.source = image::EncodedImage{png};
    return source;
  };
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason,
            "IMAGE_DECODE_FAILED");
  EXPECT_EQ(Value("sfmamba_stage_duration_seconds{model=fake,outcome=error,"
                  "stage=decode}"),
            1);
  EXPECT_EQ(Value("sfmamba_item_errors_total{model=fake,reason="
                  "IMAGE_DECODE_FAILED}"),
            1);
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

// The limit applies to the sum over the images. Once it is reached, the
// remaining images are not computed.
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
  EXPECT_GE(dropped, 1);
  EXPECT_EQ(too_large + dropped, 14);
}

TEST_F(PredictionTest, AnAnswerThatMustBecomeTooLargeCostsNoWork) {
  environment_->max_response_bytes = 1'500'000;
  gate_.Close();
  for (const bool partial : {false, true}) {
    PredictionRequest request = LargeRequest(2, 1000, 1000);
    request.method = observability::Method::kSegment;
    request.model = "maps";
    request.options.allow_partial_results = partial;
    v1::SegmentParams params;
    params.set_encoding(v1::SegmentParams::RAW_INDEX);
    request.params = params;
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    if (partial) gate_.Open();
    const absl::Status status = response.Wait();
    if (!partial) {
      EXPECT_EQ(server::GetErrorDetail(status).reason, "RESPONSE_TOO_LARGE");
      continue;
    }
    ASSERT_EQ(status, absl::OkStatus());
    EXPECT_EQ(response.errors_[0], absl::OkStatus());
    EXPECT_EQ(response.Reason(1), "RESPONSE_TOO_LARGE");
  }
}

TEST_F(PredictionTest, AWaitThatEndsDuringInferenceStillAnswers) {
  gate_.Close();
  KeptResponse response;
  PredictionRequest request = Request(1);
  request.options.max_queue_wait = absl::Seconds(5);
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  AdvanceClock(absl::Seconds(10));  // The deadline of 30 s is not passed yet.
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
