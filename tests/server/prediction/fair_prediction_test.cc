// What one request's work costs another, counted in pieces of work.

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

// 64 pictures of 20 megapixels in the test of the pool; here the real steps.
TEST_F(PredictionTest, ASmallRequestWaitsForOnePictureOfALargeOne) {
  KeptResponse one_response, large_response, small_response;
  Prediction one(*environment_, LargeRequest(1, 2000, 2000), &one_response);
  one.Start(absl::OkStatus());
  EXPECT_EQ(one_response.Wait(), absl::OkStatus());
  // It is resized in pieces, with a step between them.
  const int steps_of_large = decoding_.taken();
  EXPECT_GT(steps_of_large, 3);
  MayDecode(0);
  Prediction large(*environment_, LargeRequest(35, 2000, 2000),
                   &large_response);
  large.Start(absl::OkStatus());
  WaitUntil([this] { return decode_pool_.busy() == 1; },
            "the first picture on the decode thread");
  Prediction small(*environment_, Request(1), &small_response);
  small.Start(absl::OkStatus());
  // The one that was begun, and the small one.
  decoding_.Allow(steps_of_large + 3);
  EXPECT_EQ(small_response.Wait(), absl::OkStatus());
  EXPECT_FALSE(large_response.done_.HasBeenNotified());
  large.Cancel();
  MayDecode(Steps::kAll);
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
  MayDecode(Steps::kAll);
  EXPECT_EQ(low_response.Wait(), absl::OkStatus());
}

class MaskPiecesTest : public PredictionTest {
 protected:
  // Detects 100 masks, which are a piece each.
  PredictionRequest MaskRequest() {
    PredictionRequest request = LargeRequest(1, 2000, 2000);
    request.method = observability::Method::kDetect;
    request.model = "masks";
    v1::DetectParams params;
    params.set_mask_encoding(v1::DetectParams::COCO_RLE);
    request.params = params;
    return request;
  }
  void AwaitFirstMask() {
    WaitUntil([this] { return finish_pool_.busy() == 1; }, "the first mask");
  }

  KeptResponse large_response_;
};

TEST_F(MaskPiecesTest, ASmallRequestWaitsForOneMaskOfAnother) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  KeptResponse small_response;
  Prediction small(*environment_, Request(2), &small_response);
  StartBusy(&small);
  WaitUntil([this] { return finish_pool_.queued() == 1; }, "the small answer");
  masks_.Allow(1);
  EXPECT_EQ(small_response.Wait(), absl::OkStatus());
  EXPECT_EQ(masks_.taken(), 1);
  EXPECT_FALSE(large_response_.done_.HasBeenNotified());

  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait(), absl::OkStatus());
  EXPECT_EQ(masks_.taken(), MaskModel::kMasks);
  const Answer& answer = *large_response_.answers_[0];
  EXPECT_EQ(std::get<v1::DetectResult>(answer.result).detections_size(),
            MaskModel::kMasks);
}

TEST_F(MaskPiecesTest, ASmallAnswerOfAnIdleModelWaitsForNoMask) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  KeptResponse small_response;
  Prediction small(*environment_, Request(1), &small_response);
  small.Start(absl::OkStatus());
  EXPECT_EQ(small_response.Wait(), absl::OkStatus());
  EXPECT_EQ(masks_.taken(), 0);
  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait(), absl::OkStatus());
}

TEST_F(MaskPiecesTest, ASlowAnswerHasNoOtherAnswerRefused) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  absl::SleepFor(absl::Seconds(1));
  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait(), absl::OkStatus());
  PredictionRequest request = MaskRequest();
  request.params = v1::DetectParams();  // Boxes alone.
  request.options.validate_only = true;
  request.call.deadline = base::SteadyNow() + absl::Milliseconds(500);
  KeptResponse response;
  Prediction boxes(*environment_, std::move(request), &response);
  boxes.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(MaskPiecesTest, ACancelledAnswerEndsWithItsPiece) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  large.Cancel();
  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(masks_.taken(), 1);
}

TEST_F(MaskPiecesTest, AnExpiredAnswerEndsWithItsPiece) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  AdvanceClock(absl::Seconds(31));
  masks_.Allow(Steps::kAll);
  const absl::Status status = large_response_.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("stage: postprocess"));
  EXPECT_EQ(masks_.taken(), 1);
}

TEST_F(MaskPiecesTest, AnAnswerThatBecomesTooLargeEndsWithItsPiece) {
  environment_->max_response_bytes = 20;  // A few masks.
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(large_response_.Wait()).reason,
            "RESPONSE_TOO_LARGE");
  EXPECT_LT(masks_.taken(), 10);
}

}  // namespace
}  // namespace sfmamba::prediction
