// Tests what a prediction reports and counts about its stages and images.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

class PredictionTimingTest : public PredictionTest {
 protected:
  absl::Status Ask(PredictionRequest request) {
    response_ = std::make_unique<KeptResponse>();
    Prediction prediction(*environment_, std::move(request), response_.get());
    prediction.Start(absl::OkStatus());
    return response_->Wait();
  }
  PredictionRequest Timed(PredictionRequest request) {
    request.options.include_timing = true;
    return request;
  }
  // Returns a request for a picture of four tiles. The whole picture is run as
  // well.
  PredictionRequest Tiled() {
    PredictionRequest request = LargeRequest(1, 1200, 1200);
    request.model = "masks";
    v1::DetectParams params;
    params.set_max_detections(1);
    params.mutable_tiles()->set_overlap(0);
    params.mutable_tiles()->set_width(600);
    params.mutable_tiles()->set_height(600);
    request.params = params;
    return request;
  }
  absl::Duration Told(const google::protobuf::Duration& duration) {
    return base::FromProto(duration);
  }
  double Items(const std::string& outcome) {
    return Value("sfmamba_items_total{model=fake,outcome=" + outcome +
                 ",version=3}");
  }

  std::unique_ptr<KeptResponse> response_;
};

TEST_F(PredictionTimingTest, EachStageHasItsTimeAndTheBatchItsSize) {
  ASSERT_EQ(Ask(Timed(Request(1))), absl::OkStatus());
  const v1::Timing timing = *response_->timing_;
  absl::Duration sum;
  for (const auto* stage :
       {&timing.decode(), &timing.preprocess(), &timing.queue(),
        &timing.inference(), &timing.postprocess()}) {
    EXPECT_GT(Told(*stage), absl::ZeroDuration());
    sum += Told(*stage);
  }
  EXPECT_GE(Told(timing.total()), sum);
  EXPECT_LT(Told(timing.total()), kTestPatience);
  EXPECT_EQ(timing.batch_size(), 1);
  EXPECT_EQ(timing.padded_batch_size(), 1);
  EXPECT_EQ(timing.fold_factor(), 1);
  EXPECT_EQ(timing.bucket(), "64x64");
}

TEST_F(PredictionTimingTest, TheStatisticsAddUpWhatIsTold) {
  ASSERT_EQ(Ask(Timed(Request(1))), absl::OkStatus());
  const v1::Timing timing = *response_->timing_;
  const auto statistics =
      repository_->List().front()->metrics()->statistics().Get();
  EXPECT_EQ(Value("sfmamba_image_pixels{format=pixels}"), 1);
  EXPECT_EQ(statistics.success.count, 1);
  EXPECT_EQ(statistics.fail.count, 0);
  EXPECT_EQ(statistics.images, 1);
  EXPECT_EQ(statistics.input.time,
            Told(timing.decode()) + Told(timing.preprocess()));
  EXPECT_EQ(statistics.queue.time, Told(timing.queue()));
  EXPECT_EQ(statistics.infer.time, Told(timing.inference()));
  EXPECT_EQ(statistics.output.time, Told(timing.postprocess()));
}

TEST_F(PredictionTimingTest, ARequestWithoutAnswerIsAFailureInTheStatistics) {
  malformed_ = 0;
  EXPECT_FALSE(Ask(Request(2)).ok());
  PredictionRequest partial = Request(1);
  partial.options.allow_partial_results = true;
  EXPECT_EQ(Ask(std::move(partial)), absl::OkStatus());
  const auto statistics =
      repository_->List().front()->metrics()->statistics().Get();
  EXPECT_EQ(statistics.success.count, 0);
  EXPECT_EQ(statistics.fail.count, 2);
}

TEST_F(PredictionTimingTest, APictureInTilesIsTimedAndCountedAsOne) {
  ImageFacts facts;
  facts.format = "pixels";
  facts.pixels = 1200 * 1200;
  const absl::Duration before = costs_.Decode(facts);
  ASSERT_EQ(Ask(Timed(Tiled())), absl::OkStatus());
  EXPECT_NE(costs_.Decode(facts), before) << "nothing was learned";
  EXPECT_EQ(Value("sfmamba_image_pixels{format=pixels}"), 1);
  for (const char* stage :
       {"decode", "preprocess", "queue", "inference", "postprocess"}) {
    EXPECT_EQ(Value(absl::StrCat("sfmamba_stage_duration_seconds{model=masks,"
                                 "outcome=ok,stage=",
                                 stage, "}")),
              1)
        << stage;
  }
  EXPECT_GT(Told(response_->timing_->decode()), absl::ZeroDuration());
  EXPECT_GT(Told(response_->timing_->preprocess()), absl::ZeroDuration());
}

TEST_F(PredictionTimingTest, APictureInTilesHasTheLongestWaitOfThem) {
  constexpr absl::Duration kWait = absl::Milliseconds(50);
  mask_gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, Timed(Tiled()), &response);
  prediction.Start(absl::OkStatus());
  mask_gate_.WaitForBatch();
  WaitUntil(
      [this] {
        return Value("sfmamba_queue_items{model=masks,priority=normal}") > 0 &&
               decode_pool_.busy() == 0;
      },
      "the other tiles in the queue");
  const absl::Time now = base::SteadyNow();
  WaitUntil([now] { return base::SteadyNow() >= now + kWait; }, "their wait");
  mask_gate_.Open();
  ASSERT_EQ(response.Wait(), absl::OkStatus());
  // The longest wait and the longest inference belong to different tiles.
  EXPECT_GE(Told(response.timing_->queue()), kWait);
  EXPECT_GE(Told(response.timing_->inference()), kWait);
}

TEST_F(PredictionTimingTest, LearnsHowLongAnswersTakeToEncode) {
  PredictionRequest request = LargeRequest(1, 2000, 2000);
  request.model = "masks";
  request.params.emplace<v1::DetectParams>().set_mask_encoding(
      v1::DetectParams::COCO_RLE);
  ASSERT_EQ(Ask(std::move(request)), absl::OkStatus());
  constexpr absl::Duration kCost = absl::Milliseconds(4);
  EXPECT_NE(costs_.Encode(model::VisionTask::kDetection, kCost), kCost);
}

// The first image has already run when the second image fails. The first image
// is dropped because the second has failed.
TEST_F(PredictionTimingTest, AnAtomicRequestFailsByTheImageThatIsTheCause) {
  std::string png = server::EncodePng(64, 64, {}, std::string(64 * 64 * 3, 1));
  png.resize(png.size() / 2);  // The PNG's header is complete.
  PredictionRequest request = Request(2);
  request.image = [&png, good = std::move(request.image)](int i) {
    if (i == 0) return good(i);
    image::ImageSource source;
    source.source = image::EncodedImage{png};
    return absl::StatusOr<image::ImageSource>(source);
  };
  gate_.Close();
  MayDecode(1);
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  MayDecode(Steps::kAll);
  WaitUntil([this] { return Items("error") == 1; }, "the other to fail");
  gate_.Open();
  const absl::Status status = response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "IMAGE_DECODE_FAILED");
  EXPECT_EQ(server::GetErrorDetail(status).field, "images[1].encoded");
  EXPECT_EQ(Items("cancelled"), 1);
}

TEST_F(PredictionTimingTest, ImagesCountEachUnlessThereAreTooMany) {
  environment_->limits.max_images = 3;
  EXPECT_EQ(Ask(Request(3)), absl::OkStatus());
  EXPECT_EQ(Items("ok"), 3);
  malformed_ = 0;
  EXPECT_FALSE(Ask(Request(3)).ok());
  EXPECT_EQ(Items("error"), 3);
  EXPECT_EQ(server::GetErrorDetail(Ask(Request(4))).reason, "TOO_MANY_IMAGES");
  EXPECT_EQ(Items("error"), 4) << "they are one error together";
}

TEST_F(PredictionTimingTest, ImagesCountWhileTheyWaitForADecodeThread) {
  const std::string busy = "sfmamba_decode_threads_busy{}";
  const std::string queued = "sfmamba_decode_queue_items{}";
  MayDecode(0);
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil([&] { return Value(busy) == 1; }, "the first image's thread");
  EXPECT_EQ(Value(queued), 2);
  MayDecode(Steps::kAll);
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  WaitUntil([&] { return Value(busy) == 0; }, "the last image's thread");
  EXPECT_EQ(Value(queued), 0);
}

TEST_F(PredictionTimingTest, ADeadlineThatPassesEndsTheDecoding) {
  decoding_.Allow(1);
  KeptResponse response;
  Prediction prediction(*environment_, Request(1), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil([this] { return decoding_.taken() == 1; }, "decoding to begin");
  AdvanceClock(absl::Seconds(31));
  MayDecode(Steps::kAll);
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.Wait()));
  EXPECT_EQ(Value("sfmamba_image_pixels{format=pixels}"), 0);
  EXPECT_EQ(Value("sfmamba_deadline_misses_total{model=fake,stage=decode}"), 1);
}

TEST_F(PredictionTimingTest, ADeadlineThatPassesWhileDecodingEndsThere) {
  decoding_.Allow(2);
  KeptResponse response;
  Prediction prediction(*environment_, Request(1), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil([this] { return decoding_.taken() == 2; }, "the image to be read");
  AdvanceClock(absl::Seconds(31));
  MayDecode(1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(response.Wait()));
  EXPECT_EQ(Value("sfmamba_deadline_misses_total{model=fake,stage=decode}"), 1);
}

// A client library cancels a request at the deadline. On the client, the
// deadline may pass a little earlier than on the server.
TEST_F(PredictionTimingTest, WhoHangsUpAtTheDeadlineHasMissedIt) {
  for (const bool is_late : {false, true}) {
    gate_.Close();
    PredictionRequest request = Request(1);
    request.call.deadline = base::SteadyNow() + absl::Seconds(100);
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    gate_.WaitForBatch();
    if (is_late) AdvanceClock(absl::Seconds(100));
    prediction.Cancel();
    gate_.Open();
    EXPECT_EQ(response.Wait().code(), is_late
                                          ? absl::StatusCode::kDeadlineExceeded
                                          : absl::StatusCode::kCancelled);
    EXPECT_EQ(Items("cancelled"), 1);
    EXPECT_EQ(Items("expired"), is_late ? 1 : 0);
  }
}

TEST_F(PredictionTimingTest, TheWholeMessageCountsForTheResponsesSize) {
  environment_->max_response_bytes = kAnswerBytes;
  EXPECT_EQ(Ask(Request(1)), absl::OkStatus());
  environment_->max_response_bytes = kAnswerBytes - 1;
  KeptResponse response;
  response.answer_bytes_ = 1;
  Prediction prediction(*environment_, Request(1), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason,
            "RESPONSE_TOO_LARGE");
}

}  // namespace
}  // namespace sfmamba::prediction
