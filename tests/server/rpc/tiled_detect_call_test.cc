// Tests Detect with tiles through a client.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/masks.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;
using v1::DetectParams;
using v1::DetectRequest;
using v1::DetectResponse;
using v1::Tiles;
using DetectionCall = server::CallUnderWay<DetectRequest, DetectResponse>;

constexpr int kSide = server::FakeModel::kShortSide;  // Tiles are not resized.
// No tile that begins at a multiple of 24 pixels cuts this rectangle.
constexpr image::PixelRect kRed = {98, 50, 12, 10};
const std::vector<float> kCorners = {98, 50, 110, 60};

// Returns a request with a picture of 200 x 150 pixels. Its tiles have the size
// of the model's input.
DetectRequest TiledRequest(float overlap, const image::PixelRect& red = kRed) {
  DetectRequest request;
  request.add_images()->set_encoded(
      server::EncodePng(server::WithRed(200, 150, red)));
  Tiles& tiles = *request.mutable_params()->mutable_tiles();
  tiles.set_overlap(overlap);
  tiles.set_without_picture(true);
  return request;
}

std::vector<float> Corners(const v1::Detection& detection) {
  const v1::BoundingBox& box = detection.box();
  return {box.x_min(), box.y_min(), box.x_max(), box.y_max()};
}

class TiledDetectCallTest : public server::VisionServiceTest {
 protected:
  void StartDetector(const std::string& batching = "",
                     v1::ServerConfig config = v1::ServerConfig()) {
    Start(batching, config, /*load=*/true, model::VisionTask::kDetection);
  }
  // Expects that requests have released all memory and all places in the queue.
  void ExpectNothingHeld() {
    EXPECT_EQ(server_->WaitForSum("sfmamba_memory_held_bytes", {}, 0), 0);
    EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  }
};

TEST_F(TiledDetectCallTest, WhatTilesCutIsFoundInEach) {
  StartDetector();
  // The borders of the tiles at x = 96 and y = 48 cut the rectangle.
  const v1::DetectResult result = DetectOne(TiledRequest(0, {90, 44, 12, 10}));
  EXPECT_EQ(result.image_width(), 200);
  EXPECT_EQ(result.image_height(), 150);
  ASSERT_EQ(result.detections_size(), 4);
  EXPECT_EQ(Corners(result.detections(0)),
            (std::vector<float>{90, 44, 96, 48}));
  EXPECT_EQ(Corners(result.detections(3)),
            (std::vector<float>{96, 48, 102, 54}));
}

TEST_F(TiledDetectCallTest, WhatSeveralTilesSeeIsOneObject) {
  StartDetector();
  for (const Tiles::Merge merge : {Tiles::NMS, Tiles::GREEDY_NMM}) {
    DetectRequest request = TiledRequest(0.5f);
    request.mutable_params()->mutable_tiles()->set_merge(merge);
    const v1::DetectResult result = DetectOne(request);
    ASSERT_EQ(result.detections_size(), 1);
    EXPECT_EQ(Corners(result.detections(0)), kCorners);
    EXPECT_EQ(result.detections(0).score(), server::FakeModel::kScore);
  }
}

TEST_F(TiledDetectCallTest, TheWholePictureIsLookedAtToo) {
  StartDetector();
  DetectRequest request = TiledRequest(0, {0, 0, 200, 150});
  request.mutable_params()->mutable_tiles()->set_match_threshold(1);
  const int tiles = DetectOne(request).detections_size();
  EXPECT_EQ(tiles, 5 * 4);
  request.mutable_params()->mutable_tiles()->set_without_picture(false);
  EXPECT_EQ(DetectOne(request).detections_size(), tiles + 1);
}

TEST_F(TiledDetectCallTest, MasksAreOfThePicture) {
  StartDetector();
  DetectRequest request = TiledRequest(0.5f);
  Tiles& tiles = *request.mutable_params()->mutable_tiles();
  tiles.set_merge(Tiles::GREEDY_NMM);
  tiles.set_match(Tiles::IOS);
  request.mutable_params()->set_mask_encoding(DetectParams::COCO_RLE);
  const v1::DetectResult result = DetectOne(request);
  ASSERT_EQ(result.detections_size(), 1);
  const v1::CocoRle& rle = result.detections(0).rle();
  ASSERT_EQ(rle.width(), 200);
  ASSERT_EQ(rle.height(), 150);
  const std::vector<int> mask = server::DecodeRle(rle.counts(), 150, 200);
  for (int y = 0; y < 150; ++y) {
    for (int x = 0; x < 200; ++x) {
      const bool in_box = x >= 98 && x < 110 && y >= 50 && y < 60;
      // FakeModel never sets a mask's top left pixel.
      if (x == 98 && y == 50) continue;
      ASSERT_EQ(mask[y * 200 + x], in_box) << x << ", " << y;
    }
  }
}

TEST_F(TiledDetectCallTest, TilesOfACropAreOfThePicture) {
  StartDetector();
  DetectRequest request = TiledRequest(0.5f);
  v1::NormalizedRect& crop = *request.mutable_images(0)->mutable_crop();
  crop.set_x_min(0.25f);
  crop.set_y_min(0.32f);
  request.mutable_params()->mutable_tiles()->set_merge(Tiles::GREEDY_NMM);
  request.mutable_params()->mutable_tiles()->set_match(Tiles::IOS);
  const v1::DetectResult result = DetectOne(request);
  ASSERT_EQ(result.detections_size(), 1);
  EXPECT_EQ(Corners(result.detections(0)), kCorners);
}

TEST_F(TiledDetectCallTest, ATileLargerThanThePictureIsThePicture) {
  StartDetector();
  DetectRequest request = TiledRequest(0.2f);
  request.mutable_params()->mutable_tiles()->set_width(4000);
  request.mutable_params()->mutable_tiles()->set_height(65535);
  const v1::DetectResult tiled = DetectOne(request);
  request.mutable_params()->clear_tiles();
  EXPECT_EQ(tiled.SerializeAsString(), DetectOne(request).SerializeAsString());
}

TEST_F(TiledDetectCallTest, TilesAreImagesOfBatches) {
  StartDetector("max_batch_size: 32 max_queue_delay { nanos: 200000000 }");
  DetectRequest request = TiledRequest(0);
  *request.add_images() = request.images(0);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.results_size(), 2);
  EXPECT_LT(server_->Sum("sfmamba_batch_items_count", {}), 40);
  EXPECT_EQ(server_->WaitForSum("sfmamba_batch_items_sum", {}, 40), 40);
  EXPECT_EQ(server_->WaitForSum("sfmamba_items_total", {R"(outcome="ok")"}, 2),
            2)
      << "pictures are counted as pictures";
  ExpectNothingHeld();
}

TEST_F(TiledDetectCallTest, WhatIsOutOfRangeIsRefused) {
  StartDetector();
  const auto refuse = [this](auto change, const std::string& field,
                             const std::string& reason) {
    DetectRequest request = TiledRequest(0.2f);
    change(*request.mutable_params()->mutable_tiles());
    const server::Ending ending = Detect(request);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.field, field) << ending.message;
    EXPECT_EQ(ending.reason, reason) << ending.message;
    return ending;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string invalid = "INVALID_FIELD", many = "TOO_MANY_TILES";
  refuse([&](Tiles& t) { t.set_overlap(nan); }, "params.tiles.overlap",
         invalid);
  refuse([](Tiles& t) { t.set_overlap(0.91f); }, "params.tiles.overlap",
         invalid);
  refuse([](Tiles& t) { t.set_overlap(-0.1f); }, "params.tiles.overlap",
         invalid);
  refuse([&](Tiles& t) { t.set_match_threshold(nan); },
         "params.tiles.match_threshold", invalid);
  refuse([](Tiles& t) { t.set_width(-1); }, "params.tiles.width", invalid);
  refuse([](Tiles& t) { t.set_height(1 << 30); }, "params.tiles.height",
         invalid);
  refuse([](Tiles& t) { t.set_max_tiles(-1); }, "params.tiles.max_tiles",
         invalid);
  refuse([](Tiles& t) { t.set_merge(static_cast<Tiles::Merge>(9)); },
         "params.tiles.merge", invalid);
  refuse([](Tiles& t) { t.set_match(static_cast<Tiles::Match>(9)); },
         "params.tiles.match", invalid);
  refuse(
      [](Tiles& t) {
        t.set_width(kSide);
        t.set_height(kSide);
        t.set_max_tiles(3);
      },
      "images[0]", many);
  refuse(
      [](Tiles& t) {
        t.set_width(1);
        t.set_height(1);
      },
      "images[0]", many);
  // The refusal suggests settings. They must fit.
  const server::Ending ending = refuse(
      [](Tiles& t) {
        t.set_overlap(0.9f);
        t.set_width(kSide);
        t.set_height(kSide);
      },
      "images[0]", many);
  EXPECT_EQ(ending.metadata.at("max"), "64");
  DetectRequest request = TiledRequest(0.9f);
  Tiles& tiles = *request.mutable_params()->mutable_tiles();
  tiles.set_width(std::stoi(ending.metadata.at("width")));
  tiles.set_height(std::stoi(ending.metadata.at("height")));
  EXPECT_EQ(Detect(request).code, StatusCode::OK);
}

TEST_F(TiledDetectCallTest, WithoutASizeTilesGrowUntilTheyFit) {
  StartDetector();
  DetectRequest request = TiledRequest(0.2f);
  request.mutable_images(0)->set_encoded(
      server::EncodePng(server::WithRed(2000, 300, kRed)));
  EXPECT_EQ(Detect(request).code, StatusCode::OK);
}

TEST_F(TiledDetectCallTest, ATensorHasNoTiles) {
  StartDetector();
  DetectRequest request = TiledRequest(0.2f);
  v1::Tensor& tensor = *request.mutable_images(0)->mutable_tensor();
  tensor.set_data_type(v1::Tensor::UINT8);
  for (const int side : {3, kSide, kSide}) tensor.add_shape(side);
  tensor.set_data(std::string(3 * kSide * kSide, 'x'));
  EXPECT_EQ(Detect(request).field, "images[0].tensor");
}

TEST_F(TiledDetectCallTest, APictureOfTooManyTilesFailsAlone) {
  StartDetector();
  DetectRequest request = TiledRequest(0);
  request.mutable_params()->mutable_tiles()->set_width(kSide);
  request.mutable_params()->mutable_tiles()->set_height(kSide);
  request.add_images()->set_encoded(
      server::EncodePng(server::WithRed(1000, 900, kRed)));
  request.mutable_options()->set_allow_partial_results(true);
  DetectResponse response;
  ASSERT_EQ(Detect(request, &response).code, StatusCode::OK);
  EXPECT_FALSE(response.results(0).has_error());
  EXPECT_EQ(response.results(1).error().code(),
            static_cast<int>(StatusCode::INVALID_ARGUMENT));
}

TEST_F(TiledDetectCallTest, ManyPicturesOfManyTilesAreRefused) {
  StartDetector();
  DetectRequest request = TiledRequest(0.57f);
  while (request.images_size() < 64) {
    *request.add_images() = request.images(0);
  }
  EXPECT_EQ(Detect(request).reason, "TOO_MANY_IMAGES");
  ExpectNothingHeld();
}

TEST_F(TiledDetectCallTest, ValidateOnlyComputesNothing) {
  StartDetector();
  DetectRequest request = TiledRequest(0);
  request.mutable_options()->set_validate_only(true);
  EXPECT_EQ(Detect(request).code, StatusCode::OK);
  Tiles& tiles = *request.mutable_params()->mutable_tiles();
  tiles.set_width(kSide);
  tiles.set_height(kSide);
  tiles.set_max_tiles(19);
  EXPECT_EQ(Detect(request).reason, "TOO_MANY_TILES");
  EXPECT_EQ(server_->Sum("sfmamba_batch_items_sum", {}), 0);
}

TEST_F(TiledDetectCallTest, TilesOfACallerWhoHasGoneLeaveTheQueue) {
  StartDetector("max_batch_size: 1 max_queue_delay {}");
  server_->gate().Close();
  DetectionCall call(*server_, TiledRequest(0));
  server_->gate().WaitForBatch();
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 19), 19);
  call.Cancel();
  EXPECT_EQ(call.Wait().code, StatusCode::CANCELLED);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  server_->gate().Open();
  ExpectNothingHeld();
  EXPECT_EQ(server_->Sum("sfmamba_batch_items_sum", {}), 1);
}

TEST_F(TiledDetectCallTest, TilesOfAJpegBeginBeforeItIsDecoded) {
  StartDetector("max_batch_size: 1 max_queue_delay {}");
  std::string jpeg = server::EncodeJpeg(server::WithRed(200, 150, kRed));
  // The last rows of the picture are missing.
  jpeg.resize(jpeg.size() - 100);
  DetectRequest request = TiledRequest(0);
  request.mutable_images(0)->set_encoded(jpeg);
  request.mutable_options()->set_allow_partial_results(true);
  server_->gate().Close();
  DetectionCall call(*server_, request);
  server_->gate().WaitForBatch();
  server_->gate().Open();
  EXPECT_EQ(call.Wait().code, StatusCode::OK);
  EXPECT_EQ(call.response().results(0).error().code(),
            static_cast<int>(StatusCode::INVALID_ARGUMENT));
  EXPECT_GT(server_->Sum("sfmamba_batch_items_sum", {}), 0);
  request.mutable_options()->set_allow_partial_results(false);
  EXPECT_EQ(Detect(request).reason, "IMAGE_DECODE_FAILED");
  ExpectNothingHeld();
}

TEST_F(TiledDetectCallTest, TilesThatWaitTooLongFailTheirPicture) {
  StartDetector("max_batch_size: 1 max_queue_delay {}");
  DetectRequest request = TiledRequest(0);
  request.mutable_options()->mutable_max_queue_wait()->set_seconds(1);
  server_->gate().Close();
  DetectionCall call(*server_, request);
  server_->gate().WaitForBatch();
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 19), 19);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  server_->gate().Open();
  const server::Ending ending = call.Wait();
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED) << ending.message;
  ExpectNothingHeld();
}

}  // namespace
}  // namespace sfmamba::rpc
