// Tests the steps in which detections and their masks are encoded.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

using MaskEncoding = v1::DetectParams::MaskEncoding;

repository::ModelDirectory Detector() {
  repository::ModelDirectory model = ModelOf({"zero", "one"});
  model.config.detector.masks = true;
  return model;
}

image::PictureFrame FrameOf(int side) {
  image::PictureFrame frame;
  frame.picture = {side, side};
  return frame;
}

// A mask of `height` rows and `width` columns. Each row and each column has
// `edges` edges.
class EdgyMask final : public model::InstanceMask {
 public:
  EdgyMask(int height, int width, int edges)
      : height_(height), width_(width), edges_(edges) {}

  Bounds bounds() const override { return {0, 0, width_, height_}; }
  void AddRows(int begin, int end, base::LineRuns* runs) const override {
    AddLines(end - begin, runs);
  }
  void AddColumns(int begin, int end, base::LineRuns* runs) const override {
    AddLines(end - begin, runs);
  }

 private:
  void AddLines(int lines, base::LineRuns* runs) const {
    for (; lines > 0; --lines) {
      for (int i = 0; i < edges_; ++i) runs->edges.push_back(i);
      runs->line_ends.push_back(runs->edges.size());
    }
  }

  const int height_, width_, edges_;
};

model::Detection MakeDetection(float side, int edges) {
  model::Detection detection;
  detection.box = {0, 0, side, side};
  detection.class_id = 1;
  detection.score = 0.5f;
  detection.mask = std::make_shared<EdgyMask>(side, side, edges);
  return detection;
}

class MaskPiecesTest : public testing::TestWithParam<MaskEncoding> {};

INSTANTIATE_TEST_SUITE_P(Encodings, MaskPiecesTest,
                         testing::Values(v1::DetectParams::COCO_RLE,
                                         v1::DetectParams::PNG_CROP));

// Returns the number of encoding steps for masks of these sizes and edges.
int Pieces(MaskEncoding encoding, int objects, int side, int edges) {
  v1::DetectParams params;
  params.set_mask_encoding(encoding);
  const repository::ModelDirectory model = Detector();
  model::Detections result;
  for (int i = 0; i < objects; ++i) {
    result.detections.push_back(MakeDetection(side, edges));
  }
  const auto handler = MakeHandler(params);
  const auto encoder = handler->MakeEncoder(model, result, FrameOf(7000));
  int pieces = 0;
  for (int64_t bytes = 0; !encoder->done(); ++pieces) {
    EXPECT_LE(encoder->NextCost(), absl::Milliseconds(5));
    EXPECT_GT(encoder->NextCost(), absl::ZeroDuration());
    EXPECT_TRUE(encoder->EncodeNext().ok());
    EXPECT_GE(encoder->bytes(), bytes);
    bytes = encoder->bytes();
  }
  const Answer answer = encoder->Take();
  EXPECT_EQ(std::get<v1::DetectResult>(answer.result).detections_size(),
            objects);
  return pieces;
}

TEST_P(MaskPiecesTest, SmallMasksShareAPiece) {
  EXPECT_EQ(Pieces(GetParam(), 0, 1, 0), 0);
  EXPECT_EQ(Pieces(GetParam(), 1000, 7, 2), 1);
  EXPECT_EQ(Pieces(GetParam(), 100, 100, 4), 1);
}

TEST_P(MaskPiecesTest, ALargeMaskIsCut) {
  const bool png = GetParam() == v1::DetectParams::PNG_CROP;
  const int once = Pieces(GetParam(), 40, 7000, 2);
  // The masks have 280,000 lines together.
  EXPECT_GE(once, png ? 80 : 10);
  EXPECT_LE(once, png ? 150 : 20);
  // Steps are also limited by the number of edges. A single mask of noise takes
  // several steps.
  EXPECT_GE(Pieces(GetParam(), 1, 7000, 500), 16);
}

TEST_P(MaskPiecesTest, AMaskCountsWhileItGrows) {
  const repository::ModelDirectory model = Detector();
  v1::DetectParams params;
  params.set_mask_encoding(GetParam());
  const model::Detections result{{MakeDetection(7000, 500)}};
  const auto encoder =
      MakeHandler(params)->MakeEncoder(model, result, FrameOf(7000));
  for (int piece = 0; piece < 6; ++piece) {
    ASSERT_TRUE(encoder->EncodeNext().ok());
  }
  EXPECT_FALSE(encoder->done());
  EXPECT_GT(encoder->bytes(), 0);
}

TEST(DetectionPiecesTest, ObjectsWithoutMasksAreOnePiece) {
  EXPECT_EQ(Pieces(v1::DetectParams::MASK_ENCODING_UNSPECIFIED, 1000, 5000, 2),
            1);
  EXPECT_GT(Pieces(v1::DetectParams::MASK_ENCODING_UNSPECIFIED, 50'000, 50, 2),
            2);
}

TEST_P(MaskPiecesTest, ObjectsAndTheirMasksAreExpectedToTakeTime) {
  const repository::ModelDirectory model = Detector();
  const auto cost = [&](MaskEncoding encoding, int objects) {
    v1::DetectParams params;
    params.set_mask_encoding(encoding);
    model::Detections result;
    for (int i = 0; i < objects; ++i) {
      result.detections.push_back(MakeDetection(9, 2));
    }
    const auto handler = MakeHandler(params);
    return handler->MakeEncoder(model, result, FrameOf(100))->NextCost();
  };
  const MaskEncoding none = v1::DetectParams::MASK_ENCODING_UNSPECIFIED;
  EXPECT_EQ(cost(none, 1000), 1000 * cost(none, 1));
  EXPECT_EQ(cost(GetParam(), 1000), 1000 * cost(GetParam(), 1));
  EXPECT_GT(cost(GetParam(), 1000), 2 * cost(none, 1000));
}

TEST_P(MaskPiecesTest, WhatIsLeftIsExpectedToTakeLess) {
  const repository::ModelDirectory model = Detector();
  v1::DetectParams params;
  params.set_mask_encoding(GetParam());
  model::Detections result;
  for (int i = 0; i < 1000; ++i) {
    result.detections.push_back(MakeDetection(9, 200));
  }
  const auto handler = MakeHandler(params);
  const auto encoder = handler->MakeEncoder(model, result, FrameOf(100));
  absl::Duration cost = encoder->NextCost();
  ASSERT_LT(cost, absl::Milliseconds(4)) << "without the edges it is one piece";
  int pieces = 0;
  for (; !encoder->done(); ++pieces) {
    EXPECT_LE(encoder->NextCost(), cost);
    cost = encoder->NextCost();
    ASSERT_TRUE(encoder->EncodeNext().ok());
  }
  EXPECT_GE(pieces, 4);
  EXPECT_LT(cost, absl::Milliseconds(1));
}

}  // namespace
}  // namespace sfmamba::prediction
