// Tests how much memory of the budget a prediction holds, and for how long.

#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

using server::MemoryUse;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMessageBytes = 5000;

class PredictionMemoryTest : public PredictionTest {
 protected:
  PredictionRequest RequestOf(int images, int64_t message_bytes) {
    PredictionRequest request = Request(images);
    request.message_bytes = message_bytes;
    return request;
  }
  // Returns a request for a picture of six tiles of 48 x 48 pixels. The whole
  // picture is run as well.
  PredictionRequest TiledRequest() {
    PredictionRequest request = LargeRequest(1, 144, 96);
    request.model = "masks";
    v1::DetectParams params;
    params.mutable_tiles()->set_overlap(0);
    request.params = params;
    return request;
  }
  std::vector<server::MemoryHold> TakeAllThatIsFree() {
    std::vector<server::MemoryHold> holds;
    for (int64_t bytes = memory_.most_of_request(); bytes > 0;) {
      auto more = memory_.Take(MemoryUse::kAnswer, bytes);
      if (more.ok()) {
        holds.push_back(*std::move(more));
      } else {
        bytes /= 2;
      }
    }
    return holds;
  }
  int64_t held(MemoryUse use) const { return memory_.held(use); }
  int64_t held() const {
    return held(MemoryUse::kMessage) + held(MemoryUse::kDecode) +
           held(MemoryUse::kInput) + held(MemoryUse::kAnswer);
  }
  absl::Status Ask(PredictionRequest request) {
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    const absl::Status status = response.Wait();
    EXPECT_EQ(response.times_released_.load(), 1);
    return status;
  }
};

TEST_F(PredictionMemoryTest, TheMessageIsHeldUntilAllImagesAreDecoded) {
  gate_.Close();
  MayDecode(1);
  KeptResponse response;
  Prediction prediction(*environment_, RequestOf(2, kMessageBytes), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();  // The first image is decoded.
  EXPECT_EQ(response.times_released_.load(), 0);
  EXPECT_EQ(held(MemoryUse::kMessage), kMessageBytes);
  EXPECT_EQ(held(MemoryUse::kInput), 2 * kInputBytes);
  EXPECT_GT(held(MemoryUse::kAnswer), 0);
  MayDecode(Steps::kAll);
  WaitFor(response.released_, "the release of the request");
  EXPECT_EQ(held(MemoryUse::kInput), 2 * kInputBytes);
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(response.times_released_.load(), 1);
  EXPECT_EQ(held(MemoryUse::kMessage), 0);
}

TEST_F(PredictionMemoryTest, AnImageThatIsAnsweredReleasesNoOthersMessage) {
  MayDecode(1);
  KeptResponse response;
  Prediction prediction(*environment_, RequestOf(2, kMessageBytes), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil(
      [this] {
        return Value("sfmamba_items_total{model=fake,outcome=ok,version=3}") ==
               1;
      },
      "the first image's answer");
  EXPECT_EQ(response.times_released_.load(), 0);
  EXPECT_EQ(held(MemoryUse::kMessage), kMessageBytes);
  MayDecode(Steps::kAll);
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(PredictionMemoryTest, AnImageThatFailsHoldsTheMessageNoLonger) {
  gate_.Close();
  malformed_ = 1;
  PredictionRequest request = RequestOf(2, kMessageBytes);
  request.options.allow_partial_results = true;
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();  // The other image is decoded.
  WaitUntil([&] { return held(MemoryUse::kMessage) == 0; },
            "the release of the message, which follows the request's");
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(PredictionMemoryTest, AnswersAreHeldUntilThePredictionGoes) {
  KeptResponse response;
  {
    Prediction prediction(*environment_, RequestOf(3, kMessageBytes),
                          &response);
    prediction.Start(absl::OkStatus());
    EXPECT_EQ(response.Wait(), absl::OkStatus());
    EXPECT_EQ(held(MemoryUse::kInput), 0);
    EXPECT_EQ(held(MemoryUse::kAnswer), 3 * kAnswerBytes);
    EXPECT_EQ(Value("sfmamba_in_flight_requests{method=Classify}"), 1);
  }
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(Value("sfmamba_in_flight_requests{method=Classify}"), 0);
}

TEST_F(PredictionMemoryTest, WhatFindsNoneFreeIsRefusedAndToldToComeBack) {
  auto others = *memory_.Take(MemoryUse::kAnswer, memory_.most_of_request());
  const absl::Status refused = Ask(RequestOf(1, 2 * kMiB));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(refused).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", refused), "memory");
  EXPECT_EQ(server::GetErrorDetail(refused).retry_after, server::kRetryAfter);
  EXPECT_EQ(Ask(RequestOf(1, kMessageBytes)), absl::OkStatus())
      << "there is room for a small one";
  others.Release();
  EXPECT_EQ(Ask(RequestOf(1, 2 * kMiB)), absl::OkStatus());
  EXPECT_EQ(held(), 0);
}

TEST_F(PredictionMemoryTest, WhatIsRefusedForItsInputsHoldsNothing) {
  auto others = *memory_.Take(MemoryUse::kAnswer, memory_.most_of_request());
  std::vector<server::MemoryHold> rest;
  // This loop leaves less memory than one input needs.
  while (true) {
    auto more = memory_.Take(MemoryUse::kAnswer, kInputBytes + 1);
    if (!more.ok()) break;
    rest.push_back(*std::move(more));
  }
  const int64_t before = held();
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(RequestOf(1, 1))));
  EXPECT_EQ(held(), before);
}

TEST_F(PredictionMemoryTest, WhatCanNeverFitIsNotToldToRetry) {
  const absl::Status status = Ask(RequestOf(1, memory_.most_of_message() + 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "INPUTS_TOO_LARGE");
  // The message fits alone, but not together with its inputs.
  server::MemoryBudget little(320 << 10, 160 << 10);
  KeptResponse response;
  PredictionEnvironment small{*repository_,     decode_pool_, decode_room_,
                              finish_pool_,     finish_room_, little,
                              costs_,           metrics_,     log_,
                              without_deadline_};
  Prediction prediction(small, RequestOf(6, kMessageBytes), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason, "INPUTS_TOO_LARGE");
  EXPECT_EQ(held(), 0);
}

TEST_F(PredictionMemoryTest, ARequestMayTakeAllThatOneMayTake) {
  EXPECT_EQ(Ask(RequestOf(1, memory_.most_of_message())), absl::OkStatus());
  server::MemoryBudget little(320 << 10, 160 << 10);
  PredictionEnvironment small{*repository_,     decode_pool_, decode_room_,
                              finish_pool_,     finish_room_, little,
                              costs_,           metrics_,     log_,
                              without_deadline_};
  const auto ask = [&](int64_t message_bytes) {
    KeptResponse response;
    Prediction prediction(small, RequestOf(2, message_bytes), &response);
    prediction.Start(absl::OkStatus());
    return server::GetErrorDetail(response.Wait()).reason;
  };
  // Every answer gets at least 4 KiB.
  const int64_t rest = little.most_of_request() - 2 * (kInputBytes + 4096);
  ASSERT_LE(rest, little.most_of_message());
  EXPECT_EQ(ask(rest), "");
  EXPECT_EQ(ask(rest + 1), "INPUTS_TOO_LARGE");
}

// The queue counts the result's bytes until the answer is encoded. The input's
// bytes are released earlier.
TEST_F(PredictionMemoryTest, AResultTakesRoomInTheQueueUntilItIsAnswered) {
  const auto masks = [this] {
    PredictionRequest request = LargeRequest(1, 48, 48);
    request.model = "masks";
    v1::DetectParams params;
    params.set_mask_encoding(v1::DetectParams::COCO_RLE);
    request.params = params;
    return request;
  };
  const auto version =
      repository_->Find("masks", "model", model::VisionTask::kDetection);
  ASSERT_TRUE(version.ok());
  const auto loaded = (*version)->Loaded();
  ASSERT_TRUE(loaded.ok());
  const v1::DetectParams params = std::get<v1::DetectParams>(masks().params);
  const int64_t result =
      MakeHandler(params)->ResultBytes((*loaded)->directory, ImageFacts());
  ASSERT_GT(result, 3 * 48 * 48);
  (*loaded)->executor->SetQueueLimits({100, result / 2 * 3});
  mask_gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, masks(), &response);
  prediction.Start(absl::OkStatus());
  mask_gate_.WaitForBatch();
  EXPECT_EQ(server::GetErrorDetail(Ask(masks())).reason, "QUEUE_FULL");
  mask_gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(Ask(masks()), absl::OkStatus());
}

TEST_F(PredictionMemoryTest, APictureHoldsMemoryWhileItIsDecoded) {
  for (const bool in_tiles : {false, true}) {
    SCOPED_TRACE(in_tiles);
    const int taken = decoding_.taken();
    decoding_.Allow(1);
    KeptResponse response;
    Prediction prediction(
        *environment_, in_tiles ? TiledRequest() : RequestOf(1, 1), &response);
    prediction.Start(absl::OkStatus());
    WaitUntil([&] { return decoding_.taken() == taken + 1; },
              "the decode thread's first step");
    WaitUntil([this] { return held(MemoryUse::kDecode) >= kInputBytes; },
              "the memory to be held");
    MayDecode(Steps::kAll);
    EXPECT_EQ(response.Wait(), absl::OkStatus());
    EXPECT_EQ(held(MemoryUse::kDecode), 0);
  }
}

TEST_F(PredictionMemoryTest, AnAnswerThatFindsNoMemoryIsRefused) {
  gate_.Close();
  KeptResponse response;
  response.answer_bytes_ = 2 * kMiB;
  Prediction prediction(*environment_, RequestOf(1, kMessageBytes), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  auto others =
      *memory_.Take(MemoryUse::kInput, memory_.most_of_request() - kMiB);
  gate_.Open();
  const absl::Status status = response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_EQ(held(MemoryUse::kAnswer), 0);
}

TEST_F(PredictionMemoryTest, WhatIsEncodedIsHeldBesideTheResult) {
  mask_gate_.Close();
  PredictionRequest request = LargeRequest(1, 96, 96);
  request.model = "masks";
  v1::DetectParams params;
  params.set_mask_encoding(v1::DetectParams::COCO_RLE);
  request.params = params;
  KeptResponse response;
  response.answer_bytes_ = 1;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  mask_gate_.WaitForBatch();
  const std::vector<server::MemoryHold> others = TakeAllThatIsFree();
  mask_gate_.Open();
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).reason, "QUEUE_FULL");
}

TEST_F(PredictionMemoryTest, TilesHoldTheirInputsUntilTheyHaveRun) {
  MayDecode(0);
  KeptResponse response;
  Prediction prediction(*environment_, TiledRequest(), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(held(MemoryUse::kInput), 6 * 3 * 48 * 48 + 3 * 48 * 72);
  MayDecode(Steps::kAll);
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(held(MemoryUse::kInput), 0);
  EXPECT_EQ(held(MemoryUse::kDecode), 0);
  EXPECT_EQ(held(), kAnswerBytes);
}

TEST_F(PredictionMemoryTest, TilesHoldNoMessageOnceTheyAreMade) {
  mask_gate_.Close();
  KeptResponse response;
  PredictionRequest request = TiledRequest();
  request.message_bytes = kMessageBytes;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil([&] { return held(MemoryUse::kMessage) == 0; },
            "the release of the message, which follows the request's");
  EXPECT_GT(held(MemoryUse::kInput), 0);
  mask_gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(PredictionMemoryTest, TilesGivenUpAtAnyStepGiveEverythingBack) {
  for (int steps = 0; steps < 8; ++steps) {
    SCOPED_TRACE(steps);
    const int taken = decoding_.taken();
    decoding_.Allow(steps);
    KeptResponse response;
    Prediction prediction(*environment_, TiledRequest(), &response);
    prediction.Start(absl::OkStatus());
    WaitUntil([&] { return decoding_.taken() == taken + steps; },
              "the decode thread's steps");
    prediction.Cancel();
    MayDecode(Steps::kAll);
    EXPECT_EQ(response.Wait().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(held(), 0);
  }
}

TEST_F(PredictionMemoryTest, HoweverARequestEndsItIsReleasedOnce) {
  const auto with = [this](auto change) {
    PredictionRequest request = RequestOf(3, kMessageBytes);
    change(request);
    return request;
  };
  EXPECT_EQ(
      Ask(with([](PredictionRequest& r) { r.options.validate_only = true; })),
      absl::OkStatus());
  EXPECT_FALSE(
      Ask(with([](PredictionRequest& r) { r.model = "absent"; })).ok());
  malformed_ = 1;
  EXPECT_FALSE(Ask(with([](PredictionRequest&) {})).ok());
  EXPECT_EQ(Ask(with([](PredictionRequest& r) {
              r.options.allow_partial_results = true;
            })),
            absl::OkStatus());
  EXPECT_EQ(held(), 0);
}

TEST_F(PredictionMemoryTest, ACancelledRequestGivesEverythingBack) {
  {
    MayDecode(0);
    KeptResponse response;
    Prediction prediction(*environment_, RequestOf(3, kMessageBytes),
                          &response);
    prediction.Start(absl::OkStatus());
    prediction.Cancel();
    MayDecode(Steps::kAll);
    EXPECT_EQ(response.Wait().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(response.times_released_.load(), 1);
    EXPECT_EQ(held(), 0);
  }
  EXPECT_EQ(held(), 0);
}

}  // namespace
}  // namespace sfmamba::prediction
