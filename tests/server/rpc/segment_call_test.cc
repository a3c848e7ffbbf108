// Tests Segment through a client. classify_call_test.cc tests the behaviour
// that Segment shares with Classify.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/masks.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using v1::SegmentParams;
using v1::SegmentRequest;
using v1::SegmentResponse;
using SegmentationCall = server::CallUnderWay<SegmentRequest, SegmentResponse>;

constexpr image::PixelRect kRed = {40, 20, 80, 40};

image::RgbImage Picture() { return server::WithRed(200, 100, kRed); }

SegmentRequest RequestOf(const std::string& encoded) {
  SegmentRequest request;
  request.add_images()->set_encoded(encoded);
  return request;
}

class SegmentCallTest : public server::VisionServiceTest {
 protected:
  void StartSegmenter(const std::string& batching = "",
                      v1::ServerConfig config = v1::ServerConfig()) {
    Start(batching, config, /*load=*/true, model::VisionTask::kSegmentation);
  }
};

TEST_F(SegmentCallTest, TheMapHasThePicturesSize) {
  StartSegmenter();
  SegmentRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_options()->set_include_timing(true);
  SegmentResponse response;
  ASSERT_EQ(Segment(request, &response).code, StatusCode::OK);
  const v1::SegmentResult& result = response.results(0);
  EXPECT_EQ(result.width(), 200);
  EXPECT_EQ(result.height(), 100);
  const server::GreyPng map = server::DecodeGreyPng(result.png_index());
  EXPECT_EQ(map.width, 200);
  EXPECT_EQ(map.height, 100);
  EXPECT_EQ(map.values[40 * 200 + 80], 2);
  EXPECT_EQ(map.values[10 * 200 + 80], 0);
  EXPECT_EQ(map.values[40 * 200 + 130], 0);
  // Segmenters' inputs are not padded.
  EXPECT_EQ(response.timing().bucket(), "48x96");
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(method="Segment")", R"(code="OK")"}, 1),
            1);
  EXPECT_EQ(server_->WaitForSum("sfmamba_items_total", {R"(outcome="ok")"}, 1),
            1);
}

TEST_F(SegmentCallTest, OrTheNetworkInputs) {
  StartSegmenter();
  SegmentRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_params()->set_output_size(SegmentParams::MODEL);
  const v1::SegmentResult result = SegmentOne(request);
  EXPECT_EQ(result.width(), 96);
  EXPECT_EQ(result.height(), 48);
  EXPECT_EQ(server::DecodeGreyPng(result.png_index()).width, 96);
}

TEST_F(SegmentCallTest, OrItsCrops) {
  StartSegmenter();
  SegmentRequest request = RequestOf(server::EncodePng(Picture()));
  v1::NormalizedRect& crop = *request.mutable_images(0)->mutable_crop();
  // The crop's columns are 50 to 100.
  crop.set_x_min(0.25f);
  crop.set_x_max(0.5f);
  // The crop's rows are 30 to 50.
  crop.set_y_min(0.3f);
  crop.set_y_max(0.5f);
  const v1::SegmentResult result = SegmentOne(request);
  EXPECT_EQ(result.width(), 50);
  EXPECT_EQ(result.height(), 20);
  EXPECT_EQ(server::DecodeGreyPng(result.png_index()).values,
            std::vector<int>(1000, 2));
}

TEST_F(SegmentCallTest, TurnedPicturesHaveTurnedMaps) {
  StartSegmenter();
  const v1::SegmentResult result = SegmentOne(RequestOf(server::WithExif(
      server::EncodeJpeg(Picture()), server::ExifOrientation(6, true))));
  EXPECT_EQ(result.width(), 100);
  EXPECT_EQ(result.height(), 200);
  const server::GreyPng map = server::DecodeGreyPng(result.png_index());
  EXPECT_EQ(map.values[80 * 100 + 60], 2);
  EXPECT_EQ(map.values[20 * 100 + 60], 0);
  EXPECT_EQ(map.values[80 * 100 + 90], 0);
}

TEST_F(SegmentCallTest, EncodingsAreasAndConfidenceComeAsAskedFor) {
  StartSegmenter();
  SegmentRequest request = RequestOf(server::EncodePng(Picture()));
  SegmentParams& params = *request.mutable_params();
  params.set_encoding(SegmentParams::RAW_INDEX);
  params.set_include_class_areas(true);
  params.set_include_confidence_map(true);
  const v1::SegmentResult raw = SegmentOne(request);
  EXPECT_EQ(raw.raw().bytes_per_pixel(), 1);
  ASSERT_EQ(raw.raw().data().size(), 20000);
  const int64_t red =
      std::count(raw.raw().data().begin(), raw.raw().data().end(), '\2');
  ASSERT_EQ(raw.areas_size(), 2);
  EXPECT_EQ(raw.areas(0).class_id(), 0);
  EXPECT_EQ(raw.areas(1).label(), "label 2");
  EXPECT_EQ(raw.areas(1).pixel_count(), red);
  EXPECT_NEAR(red, 3200, 300);
  const server::GreyPng confidence =
      server::DecodeGreyPng(raw.confidence_png());
  // The softmax if one of ten logits is 1 and the others are 0.
  EXPECT_EQ(confidence.values[40 * 200 + 80], 59);
  EXPECT_EQ(confidence.values[0], 59);
  params.set_encoding(SegmentParams::RLE_PER_CLASS);
  params.add_class_filter(2);
  const v1::SegmentResult rle = SegmentOne(request);
  ASSERT_EQ(rle.rle().classes_size(), 1);
  const std::vector<int> mask =
      server::DecodeRle(rle.rle().classes(0).rle().counts(), 100, 200);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 1), red);
}

TEST_F(SegmentCallTest, OnePixelAndLongLinesArePictures) {
  StartSegmenter();
  for (const auto& [width, height] :
       {std::pair{1, 1}, {16384, 1}, {1, 16384}}) {
    const v1::SegmentResult result = SegmentOne(RequestOf(server::EncodePng(
        server::WithRed(width, height, {0, 0, width, height}))));
    EXPECT_EQ(result.width(), width);
    EXPECT_EQ(result.height(), height);
    EXPECT_EQ(server::DecodeGreyPng(result.png_index()).values,
              std::vector<int>(width * height, 2));
  }
}

TEST_F(SegmentCallTest, BadParametersAreNamed) {
  StartSegmenter();
  const struct {
    const char* field;
    std::function<void(SegmentRequest*)> change;
  } kCases[] = {
      {"params.encoding",
       [](auto* r) {
         r->mutable_params()->set_encoding(
             static_cast<SegmentParams::Encoding>(4));
       }},
      {"params.output_size",
       [](auto* r) {
         r->mutable_params()->set_output_size(
             static_cast<SegmentParams::OutputSize>(-1));
       }},
      {"params.class_filter[0]",
       [](auto* r) { r->mutable_params()->add_class_filter(10); }},
      {"options.resize",
       [](auto* r) {
         r->mutable_options()->set_resize(v1::RequestOptions::LETTERBOX);
       }},
      {"images", [](auto* r) { r->clear_images(); }},
  };
  for (const auto& bad : kCases) {
    SegmentRequest request = RequestOf(server::EncodePng(Picture()));
    bad.change(&request);
    const server::Ending ending = Segment(request);
    EXPECT_EQ(ending.reason, "INVALID_FIELD") << bad.field;
    EXPECT_EQ(ending.field, bad.field);
  }
}

// ---- Responses that are too large ----

class LargeResponseTest : public SegmentCallTest {
 protected:
  // Starts a server that sends at most 100 KB. Returns a request whose answer
  // has 250 KB.
  SegmentRequest StartAndAskForMuch() {
    v1::ServerConfig config;
    config.set_max_message_bytes(100'000);
    config.set_max_image_bytes(50'000);
    StartSegmenter("", config);
    SegmentRequest request =
        RequestOf(server::EncodePng(server::WithRed(500, 500, {})));
    request.mutable_params()->set_encoding(SegmentParams::RAW_INDEX);
    return request;
  }

  void ExpectTooLarge(const server::Ending& ending) {
    EXPECT_EQ(ending.code, StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(ending.reason, "RESPONSE_TOO_LARGE");
    EXPECT_FALSE(ending.has_retry_info);
    EXPECT_GT(std::stoll(ending.metadata.at("bytes")), 100'000);
    EXPECT_EQ(ending.metadata.at("max_bytes"), "100000");
    for (const char* option : {"fewer images", "encoding PNG_INDEX",
                               "output_size MODEL", "include_confidence_map"}) {
      EXPECT_NE(ending.message.find(option), std::string::npos)
          << ending.message;
    }
  }
};

TEST_F(LargeResponseTest, SaysWhatMakesItSmaller) {
  SegmentRequest request = StartAndAskForMuch();
  ExpectTooLarge(Segment(request));
  EXPECT_EQ(server_->WaitForSum("sfmamba_item_errors_total",
                                {R"(reason="RESPONSE_TOO_LARGE")"}, 1),
            1);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="error")"}, 1), 1);
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="RESOURCE_EXHAUSTED")",
                                 R"(reason="RESPONSE_TOO_LARGE")"},
                                1),
            1);
  request.mutable_params()->set_encoding(SegmentParams::PNG_INDEX);
  EXPECT_EQ(Segment(request).code, StatusCode::OK);
  request.mutable_params()->set_encoding(SegmentParams::RAW_INDEX);
  request.mutable_params()->set_output_size(SegmentParams::MODEL);
  EXPECT_EQ(Segment(request).code, StatusCode::OK);
}

TEST_F(LargeResponseTest, WithPartialResultsEachImageHasTheError) {
  SegmentRequest request = StartAndAskForMuch();
  request.mutable_options()->set_allow_partial_results(true);
  for (int i = 0; i < 3; ++i) *request.add_images() = request.images(0);
  EXPECT_EQ(Segment(request).code, StatusCode::OK);
  EXPECT_EQ(server_->WaitForSum("sfmamba_item_errors_total",
                                {R"(reason="RESPONSE_TOO_LARGE")"}, 4),
            4);
}

TEST_F(LargeResponseTest, ImagesAreCountedTogether) {
  SegmentRequest request = StartAndAskForMuch();
  request.mutable_images(0)->set_encoded(
      server::EncodePng(server::WithRed(300, 200, {})));
  EXPECT_EQ(Segment(request).code, StatusCode::OK);  // The answer has 60 KB.
  *request.add_images() = request.images(0);
  ExpectTooLarge(Segment(request));
}

// ---- Deadlines and cancellation ----

TEST_F(SegmentCallTest, MaxQueueWaitExpiresInTheQueue) {
  StartSegmenter("max_batch_size: 1");
  server_->gate().Close();
  SegmentationCall running(*server_, RequestOf(server::EncodePng(Picture())));
  server_->gate().WaitForBatch();
  SegmentRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_options()->mutable_max_queue_wait()->set_nanos(30'000'000);
  const server::Ending ending = Segment(request);
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.reason, "EXPIRED_IN_QUEUE");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
}

TEST_F(SegmentCallTest, RoomForTheAnswerIsHeldUntilItIsEncoded) {
  // Each request takes 40,000 bytes for the map of 200 x 100 pixels, 11,520
  // bytes for its logits and 13,824 bytes for its input.
  StartSegmenter("max_batch_size: 1 max_queue_bytes: 85000");
  server_->gate().Close();
  SegmentationCall running(*server_, RequestOf(server::EncodePng(Picture())));
  server_->gate().WaitForBatch();
  const server::Ending ending =
      Segment(RequestOf(server::EncodePng(Picture())));
  EXPECT_EQ(ending.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ending.reason, "QUEUE_FULL");
  EXPECT_TRUE(ending.has_retry_info);
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(Segment(RequestOf(server::EncodePng(Picture()))).code,
            StatusCode::OK);
}

TEST_F(SegmentCallTest, CancellingInTheQueueFreesTheRoom) {
  StartSegmenter("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  SegmentationCall running(*server_, RequestOf(server::EncodePng(Picture())));
  server_->gate().WaitForBatch();
  SegmentationCall queued(*server_, RequestOf(server::EncodePng(Picture())));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  queued.Cancel();
  EXPECT_EQ(queued.Wait().code, StatusCode::CANCELLED);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  SegmentationCall next(*server_, RequestOf(server::EncodePng(Picture())));
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(next.Wait().code, StatusCode::OK);
}

}  // namespace
}  // namespace sfmamba::rpc
