// Tests Detect through a client. classify_call_test.cc tests the behaviour that
// Detect shares with Classify.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/server/masks.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using v1::DetectParams;
using v1::DetectRequest;
using v1::DetectResponse;
using DetectionCall = server::CallUnderWay<DetectRequest, DetectResponse>;

// A red rectangle of 80 x 40 pixels in a picture of 200 x 100 pixels.
constexpr image::PixelRect kRed = {40, 20, 80, 40};

image::RgbImage Picture() { return server::WithRed(200, 100, kRed); }

DetectRequest RequestOf(const std::string& encoded) {
  DetectRequest request;
  request.add_images()->set_encoded(encoded);
  return request;
}

class DetectCallTest : public server::VisionServiceTest {
 protected:
  void StartDetector(const std::string& batching = "",
                     v1::ServerConfig config = v1::ServerConfig()) {
    Start(batching, config, /*load=*/true, model::VisionTask::kDetection);
  }

  // Expects one object whose box is `red`. The tolerance covers the pixels that
  // resizing loses.
  static void ExpectBox(const v1::DetectResult& result,
                        const image::PixelRect& red, float tolerance = 2) {
    ASSERT_EQ(result.detections_size(), 1);
    const v1::BoundingBox& box = result.detections(0).box();
    EXPECT_NEAR(box.x_min(), red.left, tolerance);
    EXPECT_NEAR(box.y_min(), red.top, tolerance);
    EXPECT_NEAR(box.x_max(), red.left + red.width, tolerance);
    EXPECT_NEAR(box.y_max(), red.top + red.height, tolerance);
  }
};

TEST_F(DetectCallTest, FindsWhatIsThereAndSaysByWhat) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.set_request_id("abc");
  request.mutable_options()->set_include_timing(true);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  EXPECT_EQ(response.request_id(), "abc");
  ASSERT_EQ(response.results_size(), 1);
  const v1::DetectResult& result = response.results(0);
  EXPECT_EQ(result.image_width(), 200);
  EXPECT_EQ(result.image_height(), 100);
  ExpectBox(result, kRed);
  EXPECT_EQ(result.detections(0).class_id(), 1);
  EXPECT_EQ(result.detections(0).label(), "label 1");
  EXPECT_EQ(result.detections(0).score(), server::FakeModel::kScore);
  EXPECT_EQ(result.detections(0).mask_case(), v1::Detection::MASK_NOT_SET);
  // The input has 96 x 48 pixels. Padding makes 96 x 64 pixels, which the
  // bucket states as height x width.
  EXPECT_EQ(response.timing().bucket(), "64x96");
  EXPECT_EQ(response.timing().batch_size(), 1);
  EXPECT_GT(response.timing().preprocess().nanos(), 0);
  for (const char* stage :
       {"decode", "preprocess", "queue", "inference", "postprocess"}) {
    EXPECT_EQ(
        server_->WaitForSum(
            "sfmamba_stage_duration_seconds_count",
            {absl::StrCat("stage=\"", stage, "\""), R"(outcome="ok")"}, 1),
        1)
        << stage;
  }
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(method="Detect")", R"(code="OK")"}, 1),
            1);
}

TEST_F(DetectCallTest, BoxesAreOfTheOrientedPicture) {
  StartDetector();
  // With orientation 6, the top row of the stored pixels is the right column of
  // the picture.
  const std::string turned = server::WithExif(server::EncodeJpeg(Picture()),
                                              server::ExifOrientation(6, true));
  const v1::DetectResult seen = DetectOne(RequestOf(turned));
  EXPECT_EQ(seen.image_width(), 100);
  EXPECT_EQ(seen.image_height(), 200);
  ExpectBox(seen, {40, 40, 40, 80});
  DetectRequest stored = RequestOf(turned);
  stored.mutable_images(0)->set_orientation(v1::Image::IGNORE);
  EXPECT_EQ(DetectOne(stored).image_width(), 200);
  ExpectBox(DetectOne(stored), kRed);
}

TEST_F(DetectCallTest, BoxesAndMasksOfACropAreOfTheWholePicture) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  v1::NormalizedRect& crop = *request.mutable_images(0)->mutable_crop();
  // The crop's columns are 20 to 100.
  crop.set_x_min(0.1f);
  crop.set_x_max(0.5f);
  // The crop's rows are 10 to 70.
  crop.set_y_min(0.1f);
  crop.set_y_max(0.7f);
  request.mutable_params()->set_mask_encoding(DetectParams::COCO_RLE);
  const v1::DetectResult result = DetectOne(request);
  EXPECT_EQ(result.image_width(), 200);
  EXPECT_EQ(result.image_height(), 100);
  // The part of the rectangle inside the crop.
  ExpectBox(result, {40, 20, 60, 40});
  const v1::CocoRle& rle = result.detections(0).rle();
  EXPECT_EQ(rle.width(), 200);
  EXPECT_EQ(rle.height(), 100);
  const std::vector<int> mask = server::DecodeRle(rle.counts(), 100, 200);
  // This pixel is inside the rectangle and the crop.
  EXPECT_EQ(mask[40 * 200 + 70], 1);
  // This pixel is right of the crop.
  EXPECT_EQ(mask[40 * 200 + 110], 0);
  // This pixel is above the rectangle.
  EXPECT_EQ(mask[10 * 200 + 70], 0);
}

TEST_F(DetectCallTest, MasksComeAsTheyAreAskedFor) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_params()->set_mask_encoding(DetectParams::PNG_CROP);
  const v1::Detection crop = DetectOne(request).detections(0);
  const server::GreyPng png = server::DecodeGreyPng(crop.png_crop());
  EXPECT_EQ(png.width,
            std::ceil(crop.box().x_max()) - std::floor(crop.box().x_min()));
  EXPECT_EQ(png.height,
            std::ceil(crop.box().y_max()) - std::floor(crop.box().y_min()));
  // FakeModel never sets a mask's top left pixel.
  EXPECT_EQ(png.values[0], 0);
  EXPECT_EQ(png.values[1], 1);
  request.mutable_params()->set_mask_encoding(DetectParams::COCO_RLE);
  const v1::Detection whole = DetectOne(request).detections(0);
  const std::vector<int> mask =
      server::DecodeRle(whole.rle().counts(), 100, 200);
  EXPECT_EQ(mask[40 * 200 + 80], 1);
  EXPECT_EQ(mask[0], 0);
}

TEST_F(DetectCallTest, AModelWithoutMasksGivesNone) {
  server::WriteModel(repository_, "boxes", "1", "",
                     model::VisionTask::kDetection,
                     " detector { architecture: FASTER_RCNN } ");
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.set_model("boxes");
  request.mutable_params()->set_mask_encoding(DetectParams::COCO_RLE);
  const v1::DetectResult result = DetectOne(request);
  ASSERT_EQ(result.detections_size(), 1);
  EXPECT_EQ(result.detections(0).mask_case(), v1::Detection::MASK_NOT_SET);
}

TEST_F(DetectCallTest, ThresholdAndClassesReachTheModel) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_params()->set_score_threshold(server::FakeModel::kScore);
  EXPECT_EQ(DetectOne(request).detections_size(), 0);
  request.mutable_params()->set_score_threshold(0.5f);
  request.mutable_params()->add_class_filter(2);
  EXPECT_EQ(DetectOne(request).detections_size(), 0);
  request.mutable_params()->add_class_filter(1);
  EXPECT_EQ(DetectOne(request).detections_size(), 1);
}

TEST_F(DetectCallTest, ATensorIsAPictureOfItsOwnSize) {
  StartDetector();
  DetectRequest request;
  v1::Tensor& tensor = *request.add_images()->mutable_tensor();
  tensor.set_data_type(v1::Tensor::FP32);
  for (int side : {3, 30, 90}) tensor.add_shape(side);
  std::vector<float> values(3 * 30 * 90);
  for (int y = 5; y < 15; ++y) {
    for (int x = 60; x < 80; ++x) values[y * 90 + x] = 1;
  }
  tensor.set_data(values.data(), values.size() * sizeof(float));
  const v1::DetectResult result = DetectOne(request);
  EXPECT_EQ(result.image_width(), 90);
  EXPECT_EQ(result.image_height(), 30);
  ExpectBox(result, {60, 5, 20, 10}, 0);
}

// ---- Pictures of unusual kinds ----

TEST_F(DetectCallTest, APictureWithoutObjectGivesNoDetection) {
  StartDetector();
  const v1::DetectResult result =
      DetectOne(RequestOf(server::EncodePng(server::WithRed(200, 100, {}))));
  EXPECT_EQ(result.detections_size(), 0);
  EXPECT_EQ(result.image_width(), 200);
}

TEST_F(DetectCallTest, OnePixelIsAPicture) {
  StartDetector();
  DetectRequest request =
      RequestOf(server::EncodePng(server::WithRed(1, 1, {0, 0, 1, 1})));
  request.mutable_params()->set_mask_encoding(DetectParams::COCO_RLE);
  const v1::DetectResult result = DetectOne(request);
  ExpectBox(result, {0, 0, 1, 1}, 0);
  EXPECT_EQ(result.detections(0).rle().counts(), "1");
}

TEST_F(DetectCallTest, LongLinesArePictures) {
  StartDetector();
  for (const auto& [width, height] : {std::pair{16384, 1}, {1, 16384}}) {
    const image::PixelRect all = {0, 0, width, height};
    ExpectBox(DetectOne(RequestOf(
                  server::EncodePng(server::WithRed(width, height, all)))),
              all, 0);
  }
  const server::Ending ending =
      Detect(RequestOf(server::EncodePng(server::WithRed(16385, 1, {}))));
  EXPECT_EQ(ending.reason, "IMAGE_TOO_LARGE");
  EXPECT_EQ(ending.field, "images[0].encoded");
}

TEST_F(DetectCallTest, AlphaIsDroppedAndSixteenBitsAreCut) {
  StartDetector();
  const image::RgbImage picture = Picture();
  std::string rgba, deep;
  for (size_t i = 0; i < picture.data.size(); ++i) {
    rgba.push_back(picture.data[i]);
    if (i % 3 == 2) rgba.push_back(0);  // The pixel is transparent.
    deep.push_back(picture.data[i]);
    deep.push_back(0x7f);
  }
  server::PngOptions options;
  options.color_type = 6;
  ExpectBox(DetectOne(RequestOf(server::EncodePng(200, 100, options, rgba))),
            kRed);
  options.color_type = 2;
  options.bit_depth = 16;
  ExpectBox(DetectOne(RequestOf(server::EncodePng(200, 100, options, deep))),
            kRed);
}

TEST_F(DetectCallTest, CmykIsConverted) {
  StartDetector();
  const image::RgbImage picture = Picture();
  // The CMYK values are inverted, as Adobe stores them. 255 therefore means no
  // black ink.
  std::vector<uint8_t> cmyk;
  for (size_t i = 0; i < picture.data.size(); ++i) {
    cmyk.push_back(picture.data[i]);
    if (i % 3 == 2) cmyk.push_back(255);
  }
  ExpectBox(DetectOne(RequestOf(server::EncodeJpeg(200, 100, 4, cmyk.data()))),
            kRed);
}

// ---- Batches ----

TEST_F(DetectCallTest, ImagesOfOnePaddedSizeShareABatch) {
  StartDetector(
      "max_batch_size: 2 mode: THROUGHPUT max_queue_delay { seconds: 60 }");
  // The inputs have 96 x 48 and 84 x 48 pixels. Padding makes 96 x 64 pixels of
  // each.
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.add_images()->set_encoded(
      server::EncodePng(server::WithRed(175, 100, kRed)));
  request.mutable_options()->set_include_timing(true);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.timing().batch_size(), 2);
  EXPECT_EQ(response.timing().bucket(), "64x96");
  ExpectBox(response.results(0), kRed);
  ExpectBox(response.results(1), kRed);
}

TEST_F(DetectCallTest, OtherSizesDoNot) {
  StartDetector("max_batch_size: 2");
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.add_images()->set_encoded(
      server::EncodePng(server::WithRed(100, 100, {})));
  request.mutable_options()->set_include_timing(true);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.timing().batch_size(), 1);
}

// ---- Errors ----

TEST_F(DetectCallTest, ABadImageFailsAloneWithPartialResults) {
  StartDetector();
  DetectRequest request = RequestOf("text");
  request.add_images()->set_encoded(server::EncodePng(Picture()));
  EXPECT_EQ(Detect(request).field, "images[0].encoded");
  request.mutable_options()->set_allow_partial_results(true);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.results(0).error().code(), StatusCode::INVALID_ARGUMENT);
  ExpectBox(response.results(1), kRed);
}

TEST_F(DetectCallTest, BadParametersAreNamed) {
  StartDetector();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    const char* field;
    std::function<void(DetectParams*)> change;
  } kCases[] = {
      {"params.score_threshold", [&](auto* p) { p->set_score_threshold(nan); }},
      {"params.score_threshold", [](auto* p) { p->set_score_threshold(-.1f); }},
      {"params.score_threshold",
       [](auto* p) { p->set_score_threshold(1.001f); }},
      {"params.nms_iou_threshold",
       [&](auto* p) { p->set_nms_iou_threshold(nan); }},
      {"params.nms_iou_threshold",
       [](auto* p) { p->set_nms_iou_threshold(-INFINITY); }},
      {"params.nms_iou_threshold",
       [](auto* p) { p->set_nms_iou_threshold(2); }},
      {"params.max_detections", [](auto* p) { p->set_max_detections(-1); }},
      {"params.max_detections", [](auto* p) { p->set_max_detections(1001); }},
      {"params.max_detections",
       [](auto* p) { p->set_max_detections(INT32_MAX); }},
      {"params.mask_encoding",
       [](auto* p) {
         p->set_mask_encoding(static_cast<DetectParams::MaskEncoding>(3));
       }},
      {"params.class_filter[0]", [](auto* p) { p->add_class_filter(-1); }},
      {"params.class_filter[1]",
       [](auto* p) {
         p->add_class_filter(9);
         p->add_class_filter(10);
       }},
  };
  const std::string picture = server::EncodePng(Picture());
  for (const auto& bad : kCases) {
    DetectRequest request = RequestOf(picture);
    bad.change(request.mutable_params());
    const server::Ending ending = Detect(request);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT) << bad.field;
    EXPECT_EQ(ending.reason, "INVALID_FIELD") << bad.field;
    EXPECT_EQ(ending.field, bad.field);
    EXPECT_NE(ending.message.find("got "), std::string::npos);
    EXPECT_NE(ending.message.find("expected "), std::string::npos);
  }
  ExpectBox(DetectOne(RequestOf(picture)), kRed);
}

TEST_F(DetectCallTest, TheBoundsOfParametersAreTaken) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  DetectParams& params = *request.mutable_params();
  for (const float bound : {0.f, 1.f}) {
    params.set_score_threshold(bound);
    params.set_nms_iou_threshold(bound);
    params.set_max_detections(1000);
    EXPECT_EQ(DetectOne(request).detections_size(), bound == 0 ? 1 : 0);
  }
}

TEST_F(DetectCallTest, AnotherResizeIsRefused) {
  StartDetector();
  DetectRequest request = RequestOf(server::EncodePng(Picture()));
  request.mutable_options()->set_resize(v1::RequestOptions::STRETCH);
  const server::Ending ending = Detect(request);
  EXPECT_EQ(ending.reason, "INVALID_FIELD");
  EXPECT_EQ(ending.field, "options.resize");
  EXPECT_NE(ending.message.find("keep_ratio is all"), std::string::npos);
}

TEST_F(DetectCallTest, ATensorBeyondTheLimitsIsRefused) {
  StartDetector();
  DetectRequest request;
  v1::Tensor& tensor = *request.add_images()->mutable_tensor();
  tensor.set_data_type(v1::Tensor::UINT8);
  for (int side : {3, 49, 49}) tensor.add_shape(side);
  tensor.set_data(std::string(3 * 49 * 49, '\0'));
  EXPECT_EQ(Detect(request).field, "images[0].tensor.shape");
}

// ---- Deadlines and cancellation ----

TEST_F(DetectCallTest, TheDeadlineHoldsBeforeTheEncodingToo) {
  StartDetector();
  server_->gate().Close();
  DetectionCall call(*server_, RequestOf(server::EncodePng(Picture())));
  server_->gate().WaitForBatch();
  server_->AdvanceClock(absl::Hours(1));
  server_->gate().Open();
  const server::Ending ending = call.Wait();
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.metadata.at("stage"), "postprocess");
}

TEST_F(DetectCallTest, CancellingWhileTheModelRuns) {
  StartDetector();
  const std::string code = R"(code="CANCELLED")", method = R"(method="Detect")";
  int calls = 0;
  // If the server notices the cancellation too late, it answers the call. The
  // test then tries again.
  while (calls < 20 &&
         server_->WaitForSum("sfmamba_requests_total", {method}, calls) ==
             calls &&
         server_->Sum("sfmamba_requests_total", {method, code}) == 0) {
    ++calls;
    server_->gate().Close();
    DetectionCall call(*server_, RequestOf(server::EncodePng(Picture())));
    server_->gate().WaitForBatch();
    call.Cancel();
    EXPECT_EQ(call.Wait().code, StatusCode::CANCELLED);
    server_->AwaitRoundTrip();
    server_->gate().Open();
  }
  EXPECT_EQ(server_->Sum("sfmamba_requests_total", {method, code}), 1)
      << "in " << calls << " calls";
  ExpectBox(DetectOne(RequestOf(server::EncodePng(Picture()))), kRed);
  EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 0), 0);
}

}  // namespace
}  // namespace sfmamba::rpc
