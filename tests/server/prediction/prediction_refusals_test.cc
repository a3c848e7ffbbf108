// Tests predictions that admission refuses or that an exception ends.

#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/prediction/prediction.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

TEST_F(PredictionTest, AFullDecodeQueueRefusesTheWholeRequestAndHoldsNothing) {
  MayDecode(0);
  KeptResponse running_response, refused_response;
  Prediction running(*environment_, Request(30), &running_response);
  running.Start(absl::OkStatus());
  WaitUntil([this] { return decode_room_.items() == 29; },
            "the first image on the decode thread, without its place");
  // Images for other models take 8 more places in the decode queue.
  const auto others = decode_room_.Take(8, 0);
  ASSERT_TRUE(others.ok());
  // Only 3 places are left in the queue.
  PredictionRequest request = Request(5);
  request.options.allow_partial_results = true;
  Prediction refused(*environment_, std::move(request), &refused_response);
  refused.Start(absl::OkStatus());
  const absl::Status status = refused_response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("the decode queue holds 37 of at most 40"));
  batching::AdmissionRequest rest;
  rest.images = 6;
  EXPECT_TRUE(executor().Admit(rest, 6 * kInputBytes).ok())
      << "the batch queue still holds places of the refused request";
  MayDecode(Steps::kAll);
  EXPECT_EQ(running_response.Wait(), absl::OkStatus());
  EXPECT_TRUE(decode_room_.Take(kDecodeItems - 8, 0).ok());
}

TEST_F(PredictionTest, ImagesTakeRoomInTheQueueBeforeTheyAreDecoded) {
  MayDecode(0);
  KeptResponse running_response, refused_response;
  Prediction running(*environment_, Request(36), &running_response);
  running.Start(absl::OkStatus());
  Prediction refused(*environment_, Request(1), &refused_response);
  refused.Start(absl::OkStatus());
  const absl::Status status = refused_response.Wait();
  EXPECT_EQ(server::GetErrorDetail(status).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", status), "batch");
  MayDecode(Steps::kAll);
  EXPECT_EQ(running_response.Wait(), absl::OkStatus());
}

TEST_F(PredictionTest, WhatCannotBeAnsweredInTimeIsRefusedAtOnce) {
  const auto ask = [this](absl::Duration deadline) {
    KeptResponse response;
    // Requests a map of 36 megapixels, which takes about 0.3 s to encode.
    PredictionRequest request = LargeRequest(1, 6000, 6000);
    v1::ClassifyParams params;
    params.mutable_heat_map()->set_encoding(v1::HeatMapParams::PNG);
    request.params = params;
    request.options.validate_only = true;
    request.call.deadline = base::SteadyNow() + deadline;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    return response.Wait();
  };
  const absl::Status refused = ask(absl::Milliseconds(200));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server::GetErrorDetail(refused).reason, "PREDICTED_DEADLINE_MISS");
  EXPECT_LT(std::stoi(server::GetMetadata("predicted_wait_ms", refused)), 200);
  batching::AdmissionRequest all;  // The refused request holds no room.
  all.images = 36;
  EXPECT_TRUE(executor().Admit(all, kQueueBytes).ok());
  EXPECT_EQ(ask(absl::InfiniteDuration()), absl::OkStatus())
      << "who sets no deadline is refused only when a queue is full";
}

// The request has twenty pictures. Each takes 0.1 s to decode, and its heat map
// takes 0.3 s to encode.
TEST_F(PredictionTest, AllThatARequestBringsCountsForItsOwnDeadline) {
  const auto ask = [this](bool with_maps, absl::Duration deadline) {
    PredictionRequest request = LargeRequest(20, 6000, 6000);
    if (with_maps) {
      request.params.emplace<v1::ClassifyParams>()
          .mutable_heat_map()
          ->set_encoding(v1::HeatMapParams::PNG);
    }
    request.options.validate_only = true;
    request.call.deadline = base::SteadyNow() + deadline;
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    return server::GetErrorDetail(response.Wait()).reason;
  };
  EXPECT_EQ(ask(false, absl::Milliseconds(1500)), "PREDICTED_DEADLINE_MISS");
  EXPECT_EQ(ask(false, absl::Seconds(20)), "");
  EXPECT_EQ(ask(true, absl::Seconds(4)), "PREDICTED_DEADLINE_MISS");
  EXPECT_EQ(ask(true, absl::Seconds(100)), "");
  environment_->default_deadline = absl::Seconds(4);
  EXPECT_EQ(ask(true, absl::InfiniteDuration()), "PREDICTED_DEADLINE_MISS")
      << "no caller may have as long as that";
}

// Seventeen pictures take 2 s to decode. Requests of normal priority wait for
// all pictures of another request. Requests of high priority wait for less than
// half of them.
TEST_F(PredictionTest, HighPriorityWaitsForFewerOthers) {
  MayDecode(0);
  KeptResponse others_response;
  Prediction others(*environment_, LargeRequest(17, 6000, 6000),
                    &others_response);
  others.Start(absl::OkStatus());
  const auto ask = [this](server::Priority priority) {
    PredictionRequest request = LargeRequest(17, 6000, 6000);
    request.options.validate_only = true;
    request.options.priority = priority;
    request.call.deadline = base::SteadyNow() + absl::Seconds(3);
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    return server::GetErrorDetail(response.Wait()).reason;
  };
  EXPECT_EQ(ask(server::Priority::kNormal), "PREDICTED_DEADLINE_MISS");
  EXPECT_EQ(ask(server::Priority::kHigh), "");
  others.Cancel();
  MayDecode(Steps::kAll);
  EXPECT_EQ(others_response.Wait().code(), absl::StatusCode::kCancelled);
}

TEST_F(PredictionTest, AnAnswerThatFindsNoRoomIsRefused) {
  auto others = finish_room_.Take(64, 0);
  ASSERT_TRUE(others.ok());
  const auto ask = [this] {
    KeptResponse response;
    Prediction prediction(*environment_, Request(1), &response);
    prediction.Start(absl::OkStatus());
    return response.Wait();
  };
  const absl::Status refused = ask();
  EXPECT_EQ(server::GetErrorDetail(refused).reason, "QUEUE_FULL");
  EXPECT_EQ(server::GetMetadata("queue", refused), "answer");
  others->Release();
  EXPECT_EQ(ask(), absl::OkStatus());
}

TEST_F(PredictionTest, ARequestMayTakeAllOfTheRoomThatThereIs) {
  KeptResponse bytes_response, images_response;
  Prediction bytes(*environment_, Request(36), &bytes_response);
  bytes.Start(absl::OkStatus());
  EXPECT_EQ(bytes_response.Wait(), absl::OkStatus()) << "the batch queue's";
  PredictionRequest request = LargeRequest(kDecodeItems, 48, 48);
  request.model = "masks";
  request.params = v1::DetectParams();
  Prediction images(*environment_, std::move(request), &images_response);
  images.Start(absl::OkStatus());
  EXPECT_EQ(images_response.Wait(), absl::OkStatus()) << "the decode queue's";
}

// The second image has another size and type, so the first image's time does
// not apply to it.
TEST_F(PredictionTest, EachImageIsJudgedByItsOwnSizeAndType) {
  constexpr absl::Duration kSlow = absl::Milliseconds(600);
  constexpr int kWide = server::FakeModel::kLongSide;
  const std::vector<int64_t> shape = {3, server::FakeModel::kShortSide, kWide};
  const std::string values(4 * 3 * shape[1] * shape[2], '\0');
  // In `images`, 's' is a small picture and 't' is a large tensor.
  const auto request_of = [&](const std::string& images) {
    PredictionRequest request = Request(images.size());
    request.method = observability::Method::kSegment;
    request.model = "maps";
    request.params = v1::SegmentParams();
    request.image = [&, images, square = std::move(request.image)](int i) {
      if (images[i] == 's') return square(i);
      image::ImageSource source;
      source.source =
          image::InputTensor{image::InputTensor::Type::kFloat32, shape, values};
      return absl::StatusOr<image::ImageSource>(source);
    };
    return request;
  };
  const auto ask = [&](const std::string& images, absl::Duration deadline,
                       bool validate_only = false) {
    PredictionRequest request = request_of(images);
    request.call.deadline = base::SteadyNow() + deadline;
    request.options.validate_only = validate_only;
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    return response.Wait();
  };
  EXPECT_EQ(ask("s", kPatience), absl::OkStatus());
  gate_.Close();
  std::thread slow([&] { EXPECT_EQ(ask("t", kPatience), absl::OkStatus()); });
  gate_.WaitForBatch();
  absl::SleepFor(kSlow);  // Now batches of these tensors are known to be slow.
  gate_.Open();
  slow.join();
  EXPECT_EQ(ask("ss", kSlow), absl::OkStatus());
  for (const char* images : {"st", "ts"}) {
    EXPECT_EQ(server::GetErrorDetail(ask(images, kSlow)).reason,
              "PREDICTED_DEADLINE_MISS")
        << images;
  }
  // Images that are not decoded yet are assumed to be as slow as the slowest
  // image of their request.
  const absl::Duration three = 3 * kSlow;
  for (const char* images : {"st", "ts"}) {
    EXPECT_EQ(ask(images, three, /*validate_only=*/true), absl::OkStatus());
  }
  MayDecode(0);
  KeptResponse others_response;
  Prediction others(*environment_, request_of(std::string(20, 's')),
                    &others_response);
  others.Start(absl::OkStatus());
  EXPECT_EQ(ask("ss", three, /*validate_only=*/true), absl::OkStatus());
  for (const char* images : {"st", "ts"}) {
    EXPECT_EQ(server::GetErrorDetail(ask(images, three, true)).reason,
              "PREDICTED_DEADLINE_MISS")
        << images;
  }
  MayDecode(Steps::kAll);
  EXPECT_EQ(others_response.Wait(), absl::OkStatus());
}

TEST_F(PredictionTest, TheDefaultDeadlineRefusesNobodyInAdvance) {
  environment_->default_deadline = absl::Seconds(2);
  MayDecode(0);
  KeptResponse response;
  // Decoding these pictures is expected to take twice the default deadline.
  Prediction prediction(*environment_, LargeRequest(30, 5000, 5000), &response);
  prediction.Start(absl::OkStatus());
  prediction.Cancel();
  MayDecode(Steps::kAll);
  EXPECT_NE(server::GetErrorDetail(response.Wait()).reason,
            "PREDICTED_DEADLINE_MISS");
}

TEST_F(PredictionTest, WhatIsStillToBeDecodedCountsForMaxQueueWait) {
  MayDecode(0);
  KeptResponse slow_response, late_response, patient_response;
  Prediction slow(*environment_, LargeRequest(30, 5000, 5000), &slow_response);
  slow.Start(absl::OkStatus());
  PredictionRequest late_request = LargeRequest(1, 5000, 5000);
  late_request.options.max_queue_wait = absl::Milliseconds(5);
  Prediction late(*environment_, std::move(late_request), &late_response);
  late.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(late_response.Wait()).reason,
            "PREDICTED_DEADLINE_MISS");
  PredictionRequest patient_request = LargeRequest(1, 5000, 5000);
  patient_request.options.max_queue_wait = absl::Minutes(1);
  Prediction patient(*environment_, std::move(patient_request),
                     &patient_response);
  patient.Start(absl::OkStatus());
  slow.Cancel();
  MayDecode(Steps::kAll);
  EXPECT_EQ(patient_response.Wait(), absl::OkStatus());
  EXPECT_EQ(slow_response.Wait().code(), absl::StatusCode::kCancelled);
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
  EXPECT_THAT(std::string(too_much.message()),
              testing::HasSubstr(absl::StrCat(
                  "take ", 37 * kInputBytes,
                  " bytes of memory, expected at most ", kQueueBytes)));
}

TEST_F(PredictionTest, AQueueSmallerThanTheDecodeQueueBoundsARequest) {
  executor().SetQueueLimits({3, kQueueBytes});
  const auto ask = [this](int images) {
    KeptResponse response;
    Prediction prediction(*environment_, Request(images), &response);
    prediction.Start(absl::OkStatus());
    return response.Wait();
  };
  EXPECT_EQ(ask(3), absl::OkStatus());
  EXPECT_EQ(ask(4).message(), "got 4 images, expected 1 to 3");
}

TEST_F(PredictionTest, AnExceptionOnAThreadOfOursIsAnInternalError) {
  for (const char* thread : {"decode", "finish", "batch-0"}) {
    ThrowOn(thread);
    KeptResponse response;
    Prediction prediction(*environment_, Request(3), &response);
    StartBusy(&prediction);
    EXPECT_EQ(response.Wait().code(), absl::StatusCode::kInternal) << thread;
    EXPECT_EQ(response.times_done_, 1);
  }
  ThrowOn("");
  KeptResponse response;
  Prediction prediction(*environment_, Request(3), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait(), absl::OkStatus()) << "the threads live on";
}

// The batch thread that starts the answer has no caller to receive an
// exception.
TEST_F(PredictionTest, AnAnswerThatCannotBeBegunIsAnInternalError) {
  masks_.Break();
  PredictionRequest request = Request(1);
  request.model = "masks";
  request.params.emplace<v1::DetectParams>().set_mask_encoding(
      v1::DetectParams::COCO_RLE);
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(response.Wait().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace sfmamba::prediction
