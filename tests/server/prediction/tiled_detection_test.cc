// Tests how Detect merges the detections of a picture's tiles, and which costs
// it predicts for its answers.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "tests/server/prediction/encoded_answer.h"

namespace sfmamba::prediction {
namespace {

repository::ModelDirectory Detector() {
  repository::ModelDirectory model = ModelOf({"zero", "one", "two"});
  model.config.detector.masks = true;
  model.config.detector.max_detections = 100;
  return model;
}

model::Detection MakeDetection(const model::Box& box, int class_id,
                               float score) {
  model::Detection detection;
  detection.box = box;
  detection.class_id = class_id;
  detection.score = score;
  return detection;
}

std::vector<float> Corners(const v1::BoundingBox& box) {
  return {box.x_min(), box.y_min(), box.x_max(), box.y_max()};
}

// Merges detections from two tiles. The second tile begins 24 pixels to the
// right of the first.
class TilesMergingTest : public testing::Test {
 protected:
  TilesMergingTest() {
    facts_.parts.resize(2);
    facts_.parts[0].region = {0, 0, 48, 48};
    facts_.parts[1].region = {24, 0, 48, 48};
    // In the picture, the boxes cover columns 20 to 40 and columns 24 to 44.
    // Together they cover 24 columns, and 16 of these are in both boxes. The
    // rows of both boxes are the same.
    left_.detections = {MakeDetection({20, 10, 40, 30}, 0, 0.9f)};
    right_.detections = {MakeDetection({0, 10, 20, 30}, 0, 0.8f)};
  }

  std::unique_ptr<AnswerEncoder> Encoder(const TaskHandler& handler) {
    collector_ = handler.MakeCollector(model_, facts_);
    collector_->Add(1, right_);
    collector_->Add(0, left_);
    image::PictureFrame frame;
    frame.picture = {48, 72};
    return collector_->MakeEncoder(frame);
  }
  v1::DetectResult Merged() {
    const auto handler = MakeHandler(params_);
    absl::StatusOr<Answer> answer = EncodeAll(Encoder(*handler).get());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return std::get<v1::DetectResult>(std::move(answer->result));
  }

  repository::ModelDirectory model_ = Detector();
  ImageFacts facts_;
  model::Detections left_, right_;
  v1::DetectParams params_;
  std::unique_ptr<PartCollector> collector_;
};

TEST_F(TilesMergingTest, TheRequestSaysHowObjectsMergeAndMatch) {
  ASSERT_EQ(Merged().detections_size(), 1);
  EXPECT_EQ(Corners(Merged().detections(0).box()),
            (std::vector<float>{20, 10, 40, 30}));
  v1::Tiles& tiles = *params_.mutable_tiles();
  tiles.set_merge(v1::Tiles::GREEDY_NMM);
  EXPECT_EQ(Corners(Merged().detections(0).box()),
            (std::vector<float>{20, 10, 44, 30}));
  tiles.set_match_threshold(0.75f);
  EXPECT_EQ(Merged().detections_size(), 2) << "they overlap by two thirds";
  tiles.set_match(v1::Tiles::IOS);
  EXPECT_EQ(Merged().detections_size(), 1) << "by four fifths of the smaller";
}

TEST_F(TilesMergingTest, ClassesMergeOnlyIfTheRequestSaysSo) {
  right_.detections[0].class_id = 2;
  EXPECT_EQ(Merged().detections_size(), 2);
  params_.set_class_agnostic_nms(true);
  EXPECT_EQ(Merged().detections_size(), 1);
}

TEST_F(TilesMergingTest, NoMoreObjectsAreKeptThanTheRequestOrTheModelSays) {
  right_.detections[0].class_id = 2;
  params_.set_max_detections(1);
  EXPECT_EQ(Merged().detections_size(), 1);
  params_.set_max_detections(0);
  model_.config.detector.max_detections = 1;
  EXPECT_EQ(Merged().detections_size(), 1);
}

TEST_F(TilesMergingTest, ManyDetectionsAreMergedInPieces) {
  model_.config.detector.max_detections = 5000;
  right_.detections.clear();
  for (int i = 0; i < 3000; ++i) {
    const float x = i % 48, y = i / 48;
    right_.detections.push_back(
        MakeDetection({x, y, x + 0.5f, y + 0.5f}, 1, 0.5f));
  }
  const auto handler = MakeHandler(params_);
  const auto encoder = Encoder(*handler);
  int merging = 0;
  for (; encoder->bytes() == 0 && !encoder->done(); ++merging) {
    EXPECT_GT(encoder->NextCost(), absl::Microseconds(1));
    EXPECT_LE(encoder->NextCost(), absl::Milliseconds(5));
    ASSERT_TRUE(encoder->EncodeNext().ok());
  }
  EXPECT_GE(merging, 4);
}

// Returns the field that is out of range, or "" if there is none.
std::string WrongField(const std::function<void(v1::DetectParams*)>& change) {
  v1::DetectParams params;
  change(&params);
  const absl::Status status = MakeHandler(params)->CheckParams(Detector());
  return server::GetErrorDetail(status).field;
}

TEST(DetectionParamsTest, FractionsAreOfOne) {
  using Set = void (*)(v1::DetectParams*, float);
  for (const auto& [field, set] : std::vector<std::pair<std::string, Set>>{
           {"params.score_threshold",
            [](v1::DetectParams*p, float f) { p->set_score_threshold(f); }},
           {"params.nms_iou_threshold",
            [](v1::DetectParams*p, float f) { p->set_nms_iou_threshold(f); }},
           {"params.tiles.match_threshold", [](v1::DetectParams*p, float f) {
              p->mutable_tiles()->set_match_threshold(f);
            }}}) {
    const auto wrong = [set = set](float value) {
      return WrongField([&](auto* params) { set(params, value); });
    };
    EXPECT_EQ(wrong(0), "");
    EXPECT_EQ(wrong(1), "");
    for (const float value : {-0.01f, 1.01f, std::nanf("")}) {
      EXPECT_EQ(wrong(value), field) << value;
    }
  }
}

TEST(DetectionParamsTest, NumbersEndAtTheirBounds) {
  using Set = void (*)(v1::DetectParams*, int);
  const struct {
    const char* field;
    Set set;
    int most;
  } cases[] = {
      {"params.max_detections",
       [](v1::DetectParams* p, int n) { p->set_max_detections(n); }, 1000},
      {"params.class_filter[0]",
       [](v1::DetectParams* p, int n) { p->add_class_filter(n); }, 2},
      {"params.tiles.width",
       [](v1::DetectParams* p, int n) { p->mutable_tiles()->set_width(n); },
       65535},
      {"params.tiles.height",
       [](v1::DetectParams* p, int n) { p->mutable_tiles()->set_height(n); },
       65535},
      {"params.tiles.max_tiles",
       [](v1::DetectParams* p, int n) { p->mutable_tiles()->set_max_tiles(n); },
       std::numeric_limits<int>::max()}};
  for (const auto& c : cases) {
    const auto wrong = [&c](int value) {
      return WrongField([&](auto* params) { c.set(params, value); });
    };
    EXPECT_EQ(wrong(0), "") << c.field;
    EXPECT_EQ(wrong(c.most), "") << c.field;
    EXPECT_EQ(wrong(-1), c.field);
    if (c.most < std::numeric_limits<int>::max()) {
      EXPECT_EQ(wrong(c.most + 1), c.field);
    }
  }
}

TEST(DetectionParamsTest, TilesOverlapByNineTenthsAtMost) {
  const auto wrong = [](float overlap) {
    return WrongField(
        [&](auto* params) { params->mutable_tiles()->set_overlap(overlap); });
  };
  EXPECT_EQ(wrong(0), "");
  EXPECT_EQ(wrong(0.9f), "");
  EXPECT_EQ(wrong(0.91f), "params.tiles.overlap");
}

TEST(DetectionCostsTest, ResultsTakeMemoryForTheMasksThatAreAskedFor) {
  const repository::ModelDirectory model = Detector();
  v1::DetectParams params;
  ImageFacts one, tiled;
  tiled.parts.resize(3);
  EXPECT_EQ(MakeHandler(params)->ResultBytes(model, one), 0);
  EXPECT_GE(MakeHandler(params)->ResultBytes(model, tiled),
            3 * 100 * int64_t{sizeof(model::Detection)});
  params.set_mask_encoding(v1::DetectParams::COCO_RLE);
  EXPECT_GE(MakeHandler(params)->ResultBytes(model, one), 100 * 28 * 28 * 4);
  params.set_max_detections(7);
  EXPECT_GE(MakeHandler(params)->ResultBytes(model, one), 7 * 28 * 28 * 4);
  EXPECT_LT(MakeHandler(params)->ResultBytes(model, one), 8 * 28 * 28 * 4);
}

TEST(DetectionCostsTest, MasksAndMergingTakeTime) {
  const repository::ModelDirectory model = Detector();
  ImageFacts image;
  image.seen = {400, 400};
  v1::DetectParams params;
  const auto longest = [&] {
    return MakeHandler(params)->LongestAnswer(model, image);
  };
  const absl::Duration boxes = longest();
  EXPECT_GT(boxes, absl::ZeroDuration());
  image.parts.resize(50);
  const absl::Duration merged = longest();
  EXPECT_GT(merged, 2 * boxes) << "50 times 100 are compared with 100";
  params.set_mask_encoding(v1::DetectParams::PNG_CROP);
  EXPECT_GT(longest(), merged);
}

}  // namespace
}  // namespace sfmamba::prediction
