// Tests how long requests wait for the work of other requests. The tests count
// steps of work instead of time.

#include <pthread.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

// fair_pool_test.cc tests the pool with 64 pictures of 20 megapixels. This test
// runs the real steps of a prediction.
TEST_F(PredictionTest, ASmallRequestWaitsForOnePictureOfALargeOne) {
  KeptResponse one_response, large_response, small_response;
  Prediction one(*environment_, LargeRequest(1, 2000, 2000), &one_response);
  one.Start(absl::OkStatus());
  EXPECT_EQ(one_response.Wait(), absl::OkStatus());
  // The decode thread reads the clock after each resized part of the picture.
  // Each reading takes a step.
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
  // These steps are enough for the picture that was begun and for the small
  // request.
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

TEST_F(PredictionTest, ACancelledRequestEndsBeforeOthersAreDecoded) {
  MayDecode(0);
  KeptResponse first_response, other_response, gone_response;
  Prediction first(*environment_, Request(1), &first_response);
  first.Start(absl::OkStatus());
  WaitUntil([this] { return decode_pool_.busy() == 1; },
            "the first image on the decode thread");
  Prediction other(*environment_, LargeRequest(10, 2000, 2000),
                   &other_response);
  Prediction gone(*environment_, LargeRequest(10, 2000, 2000), &gone_response);
  other.Start(absl::OkStatus());
  gone.Start(absl::OkStatus());
  gone.Cancel();
  // The first image takes three steps. Each of the ten cancelled images reads
  // the clock once, which takes a step. Their request reads the clock once
  // more.
  decoding_.Allow(3 + 10 + 1);
  EXPECT_EQ(first_response.Wait(), absl::OkStatus());
  EXPECT_EQ(gone_response.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(other_response.done_.HasBeenNotified());
  other.Cancel();
  MayDecode(Steps::kAll);
  EXPECT_EQ(other_response.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PredictionTest, ImagesThatDoNotFitIntoMemoryTogetherAreDecodedInTurn) {
  server::FairPool::Options options;
  options.threads = 2;
  options.memory_bytes = 1;
  server::FairPool pool(options);
  Steps steps;
  steps.Allow(0);
  PredictionEnvironment environment{
      *repository_, pool,   decode_room_, finish_pool_, finish_room_,
      memory_,      costs_, metrics_,     log_,         without_deadline_};
  environment.clock = [&steps, test = pthread_self()] {
    if (!pthread_equal(pthread_self(), test)) steps.Take();
    return base::SteadyNow();
  };
  KeptResponse first_response, second_response;
  Prediction first(environment, Request(1), &first_response);
  Prediction second(environment, Request(1), &second_response);
  first.Start(absl::OkStatus());
  WaitUntil([&pool] { return pool.busy() == 1; }, "the first image's thread");
  second.Start(absl::OkStatus());
  WaitUntil([&pool] { return pool.queued() == 1; }, "the second one");
  // The second image waits for memory, so the pool's other thread is idle. Work
  // that takes no memory can run on this thread.
  absl::Notification done;
  server::Work work;
  work.group = pool.NewGroup();
  work.run = [&done] { done.Notify(); };
  pool.Run(std::move(work));
  WaitFor(done, "work that takes no memory");
  steps.Allow(Steps::kAll);
  EXPECT_EQ(first_response.Wait(), absl::OkStatus());
  EXPECT_EQ(second_response.Wait(), absl::OkStatus());
}

TEST_F(PredictionTest, ImagesOfACancelledRequestLeaveTheQueue) {
  const auto queued = [this] {
    return Value("sfmamba_queue_items{model=fake,priority=normal}");
  };
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  WaitUntil([&] { return queued() == 2; }, "two images in the queue");
  prediction.Cancel();
  WaitUntil([&] { return queued() == 0; }, "them to leave it");
  gate_.Open();
  EXPECT_EQ(response.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PredictionTest, TilesOfAPictureThatFailsLeaveTheQueue) {
  std::string jpeg = server::EncodeJpeg(server::Gradient(240, 240));
  jpeg.resize(jpeg.size() / 2);  // The first tiles are complete.
  mask_gate_.Close();
  PredictionRequest whole = LargeRequest(1, 48, 48);
  whole.model = "masks";
  auto& params = whole.params.emplace<v1::DetectParams>();
  params.mutable_tiles()->set_overlap(0);
  PredictionRequest torn = Request(1);
  torn.model = "masks";
  torn.params = params;
  torn.image = [&jpeg](int) {
    image::ImageSource source;
    source.source = image::EncodedImage{jpeg};
    return absl::StatusOr<image::ImageSource>(source);
  };
  KeptResponse whole_response, torn_response;
  Prediction running(*environment_, std::move(whole), &whole_response);
  running.Start(absl::OkStatus());
  mask_gate_.WaitForBatch();
  Prediction failing(*environment_, std::move(torn), &torn_response);
  failing.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(torn_response.Wait()).reason,
            "IMAGE_DECODE_FAILED")
      << "it waits for no batch";
  mask_gate_.Open();
  EXPECT_EQ(whole_response.Wait(), absl::OkStatus());
}

TEST_F(PredictionTest, ImagesWaitForTheirBatchWithTheRequestsPriority) {
  gate_.Close();
  PredictionRequest request = Request(2);
  request.options.priority = server::Priority::kHigh;
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  WaitUntil(
      [this] {
        return Value("sfmamba_queue_items{model=fake,priority=high}") == 1;
      },
      "the second image in the queue");
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

class MaskPiecesTest : public PredictionTest {
 protected:
  // Detects 100 masks, and each mask is one encoding step.
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
  EXPECT_EQ(finish_room_.items(), 1) << "it is still encoded";
  EXPECT_EQ(memory_.held(server::MemoryUse::kInput), 0) << "they have run";
  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait(), absl::OkStatus());
  EXPECT_EQ(finish_room_.items(), 0);
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
  // The request asks for boxes without masks.
  request.params = v1::DetectParams();
  request.options.validate_only = true;
  request.call.deadline = base::SteadyNow() + absl::Milliseconds(500);
  KeptResponse response;
  Prediction boxes(*environment_, std::move(request), &response);
  boxes.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(MaskPiecesTest, ACancelledAnswerEndsBeforeOthersAreEncoded) {
  masks_.Allow(0);
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  AwaitFirstMask();
  KeptResponse other_response, gone_response;
  Prediction other(*environment_, MaskRequest(), &other_response);
  other.Start(absl::OkStatus());
  WaitUntil([this] { return finish_pool_.queued() == 1; }, "another answer");
  Prediction gone(*environment_, MaskRequest(), &gone_response);
  gone.Start(absl::OkStatus());
  WaitUntil([this] { return finish_pool_.queued() == 2; }, "a third one");
  gone.Cancel();
  masks_.Allow(1);
  EXPECT_EQ(gone_response.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(masks_.taken(), 1);
  large.Cancel();
  other.Cancel();
  masks_.Allow(Steps::kAll);
  EXPECT_EQ(large_response_.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(other_response.Wait().code(), absl::StatusCode::kCancelled);
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
  environment_->max_response_bytes = 20;  // The first masks fit, but not all.
  Prediction large(*environment_, MaskRequest(), &large_response_);
  large.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(large_response_.Wait()).reason,
            "RESPONSE_TOO_LARGE");
  EXPECT_LT(masks_.taken(), 10);
}

TEST_F(MaskPiecesTest, UnfinishedAnswersCountForTheResponsesSize) {
  int64_t whole = 0;  // The size of one image's answer in bytes.
  for (const int images : {1, 2}) {
    PredictionRequest request = MaskRequest();
    request.images = images;
    KeptResponse response;
    response.answer_bytes_ = 0;
    environment_->max_response_bytes =
        images == 1 ? std::numeric_limits<int64_t>::max() : whole * 3 / 2;
    Prediction prediction(*environment_, std::move(request), &response);
    const int before = masks_.taken();
    masks_.Allow(0);
    prediction.Start(absl::OkStatus());
    WaitUntil([&] { return finish_room_.items() == images; }, "the masks");
    masks_.Allow(Steps::kAll);
    const absl::Status status = response.Wait();
    if (images == 1) {
      ASSERT_EQ(status, absl::OkStatus());
      for (const auto& object :
           std::get<v1::DetectResult>(response.answers_[0]->result)
               .detections()) {
        whole += object.rle().counts().size();
      }
    } else {
      EXPECT_EQ(server::GetErrorDetail(status).reason, "RESPONSE_TOO_LARGE");
      EXPECT_LT(masks_.taken() - before, 1.75 * MaskModel::kMasks);
    }
  }
}

}  // namespace
}  // namespace sfmamba::prediction
