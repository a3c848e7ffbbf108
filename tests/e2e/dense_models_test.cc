// Tests Detect and Segment in a real server with real models. Their weights are
// random, so the results are meaningless. The results must be well formed,
// repeatable, and independent of other images in the batch.

#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/server/masks.h"
#include "tests/server/picture.h"
#include "tests/testing/http.h"

namespace sfmamba {
namespace {

struct Picture {
  std::string name;
  std::string bytes;
  int width, height;  // The size after the EXIF orientation is applied.
};

// Returns one picture of each kind that servers often handle wrongly.
std::vector<Picture> Pictures() {
  const image::RgbImage gradient = server::Gradient(120, 80);
  std::string rgba, deep;
  std::vector<uint8_t> cmyk;
  for (size_t i = 0; i < gradient.data.size(); ++i) {
    rgba.push_back(gradient.data[i]);
    deep.push_back(gradient.data[i]);
    deep.push_back(gradient.data[i]);
    cmyk.push_back(gradient.data[i]);
    if (i % 3 != 2) continue;
    rgba.push_back(i);
    cmyk.push_back(255);
  }
  server::PngOptions with_alpha, of_16_bits;
  with_alpha.color_type = 6;
  of_16_bits.bit_depth = 16;
  return {
      {"PNG", server::EncodePng(gradient), 120, 80},
      {"the same size",
       server::EncodePng(server::WithRed(120, 80, {10, 10, 40, 30})), 120, 80},
      {"another padded size", server::EncodePng(server::Gradient(90, 90)), 90,
       90},
      {"the same padded size", server::EncodePng(server::Gradient(118, 80)),
       118, 80},
      {"plain", server::EncodePng(server::WithRed(120, 80, {})), 120, 80},
      {"one pixel", server::EncodePng(server::Gradient(1, 1)), 1, 1},
      {"16384 wide", server::EncodePng(server::Gradient(16384, 1)), 16384, 1},
      {"16384 high", server::EncodePng(server::Gradient(1, 16384)), 1, 16384},
      {"RGBA", server::EncodePng(120, 80, with_alpha, rgba), 120, 80},
      {"16 bits", server::EncodePng(120, 80, of_16_bits, deep), 120, 80},
      {"CMYK", server::EncodeJpeg(120, 80, 4, cmyk.data()), 120, 80},
      {"turned",
       server::WithExif(server::EncodeJpeg(gradient),
                        server::ExifOrientation(6, true)),
       80, 120},
  };
}

// Returns how many of the 0/1 values are 1.
int64_t Count(const std::vector<int>& mask) {
  return std::accumulate(mask.begin(), mask.end(), int64_t{0});
}

void ExpectWellFormed(const v1::DetectResult& result, const Picture& picture) {
  EXPECT_EQ(result.image_width(), picture.width);
  EXPECT_EQ(result.image_height(), picture.height);
  float last = 1;
  for (const v1::Detection& detection : result.detections()) {
    EXPECT_LE(detection.score(), last);
    EXPECT_GT(detection.score(), 0);
    last = detection.score();
    EXPECT_EQ(detection.label(), absl::StrCat("class_", detection.class_id()));
    const v1::BoundingBox& box = detection.box();
    EXPECT_GE(box.x_min(), 0);
    EXPECT_LE(box.x_min(), box.x_max());
    EXPECT_LE(box.x_max(), picture.width);
    EXPECT_GE(box.y_min(), 0);
    EXPECT_LE(box.y_min(), box.y_max());
    EXPECT_LE(box.y_max(), picture.height);
    ASSERT_TRUE(detection.has_rle());
    server::DecodeRle(detection.rle().counts(), picture.height, picture.width);
  }
}

void ExpectWellFormed(const v1::SegmentResult& result, const Picture& picture) {
  EXPECT_EQ(result.width(), picture.width);
  EXPECT_EQ(result.height(), picture.height);
  const server::GreyPng map = server::DecodeGreyPng(result.png_index());
  ASSERT_EQ(map.values.size(), int64_t{1} * picture.width * picture.height);
  int64_t pixels = 0;
  for (const v1::ClassArea& area : result.areas()) {
    std::vector<int> mask;
    for (const int value : map.values) mask.push_back(value == area.class_id());
    EXPECT_EQ(area.pixel_count(), Count(mask));
    pixels += area.pixel_count();
  }
  EXPECT_EQ(pixels, map.values.size());
  EXPECT_EQ(server::DecodeGreyPng(result.confidence_png()).width,
            picture.width);
}

class DenseModelsTest : public testing::Test {
 protected:
  DenseModelsTest()
      : repository_(WriteTinyModel()),
        server_((AddRandomDenseModels(repository_),
                 std::vector<std::string>{"--model_repository=" + repository_,
                                          "--random_init"})) {}

  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
    stub_ = v1::VisionService::NewStub(grpc::CreateChannel(
        server_.address(), grpc::InsecureChannelCredentials()));
  }

  v1::DetectResponse Answer(const v1::DetectRequest& request) {
    return Call(request, v1::DetectResponse(),
                &v1::VisionService::Stub::Detect);
  }
  v1::SegmentResponse Answer(const v1::SegmentRequest& request) {
    return Call(request, v1::SegmentResponse(),
                &v1::VisionService::Stub::Segment);
  }

  // Sends each picture alone, twice, and then all pictures in one request.
  // Expects the same answers.
  template <typename Request>
  void ExpectSameAloneAndTogether(const Request& options) {
    Request all = options;
    std::vector<std::string> alone;
    for (const Picture& picture : Pictures()) {
      SCOPED_TRACE(picture.name);
      Request request = options;
      request.add_images()->set_encoded(picture.bytes);
      all.add_images()->set_encoded(picture.bytes);
      const auto response = Answer(request);
      ASSERT_EQ(response.results_size(), 1);
      ExpectWellFormed(response.results(0), picture);
      alone.push_back(response.results(0).SerializeAsString());
      EXPECT_EQ(Answer(request).results(0).SerializeAsString(), alone.back());
    }
    const auto together = Answer(all);
    ASSERT_EQ(together.results_size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together.results(i).SerializeAsString(), alone[i])
          << Pictures()[i].name;
    }
    const auto samples = Samples(HttpGet(server_.metrics_port(), "/metrics"));
    EXPECT_EQ(SumOf(samples, "sfmamba_items_total", {R"(outcome="ok")"}),
              3 * alone.size());
  }

 private:
  template <typename Request, typename Response, typename Method>
  Response Call(const Request& request, Response response, Method method) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(100));
    const grpc::Status status =
        (stub_.get()->*method)(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  const std::string repository_;
  ServerProcess server_;
  std::unique_ptr<v1::VisionService::Stub> stub_;
};

TEST_F(DenseModelsTest, DetectsTheSameAloneAndTogether) {
  v1::DetectRequest request;
  request.mutable_params()->set_score_threshold(0.01f);
  request.mutable_params()->set_mask_encoding(v1::DetectParams::COCO_RLE);
  request.mutable_params()->set_max_detections(10);
  ExpectSameAloneAndTogether(request);
  // The weights are random, so the boxes have no meaning. But there must be
  // ten.
  request.add_images()->set_encoded(
      server::EncodePng(server::Gradient(120, 80)));
  EXPECT_EQ(Answer(request).results(0).detections_size(), 10);
}

TEST_F(DenseModelsTest, SegmentsTheSameAloneAndTogether) {
  v1::SegmentRequest request;
  request.mutable_params()->set_include_class_areas(true);
  request.mutable_params()->set_include_confidence_map(true);
  ExpectSameAloneAndTogether(request);
}

}  // namespace
}  // namespace sfmamba
