#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "ATen/ops/full_like.h"
#include "ATen/ops/tensor.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/heads/anchors.h"
#include "model/heads/box_coder.h"
#include "model/heads/box_head.h"
#include "model/heads/feature_pyramid.h"
#include "model/heads/mask_head.h"
#include "model/heads/multiclass_nms.h"
#include "model/ops/cpu/ops.h"
#include "model/weights/state_dict.h"
#include "tests/model/implementations.h"
#include "tests/testing/fixture.h"

namespace sfmamba::heads {
namespace {

constexpr double kTolerance = 1e-4;

const std::vector<float> kRatios = {0.5f, 1.0f, 2.0f};

// Returns a configuration with the shapes of the fixtures' heads.
model::DetectorConfig SmallConfig() {
  model::DetectorConfig config;
  config.channels = 12;
  config.fc_width = 24;
  return config;
}

at::Tensor ChannelsLast(const at::Tensor& map) {
  return map.contiguous(at::MemoryFormat::ChannelsLast);
}

Deltas ToDeltas(const at::Tensor& four) {
  const float* values = four.const_data_ptr<float>();
  return {values[0], values[1], values[2], values[3]};
}

// Tests both implementations of the layers.
class DetectorPartsTest : public testing::TestWithParam<bool> {
 protected:
  const c10::InferenceMode guard_;
  const ops::Implementation& implementation_ =
      model::CpuOrReference(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Forms, DetectorPartsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

TEST(AnchorsTest, AreTheReferences) {
  const Fixture fixture("anchors");
  const at::Tensor sizes = fixture["feat_sizes"];
  for (int level = 0; level < 5; ++level) {
    const Anchors anchors(4 << level, 8, kRatios);
    const at::Tensor expected = fixture["all." + std::to_string(level)];
    const int64_t width = sizes[level][1].item<int64_t>();
    const at::Tensor all = at::empty_like(expected);
    ASSERT_EQ(all.size(0), sizes[level][0].item<int64_t>() * width * 3);
    for (int64_t i = 0; i < all.size(0); ++i) {
      SetBox(all, i, anchors.At(i, width));
    }
    EXPECT_LE(RelativeError(all, expected), 1e-6) << "level " << level;
  }
}

TEST(BoxCoderTest, MovesAnchors) {
  const Fixture fixture("delta2bbox");
  const at::Tensor rois = fixture["rpn.rois"], deltas = fixture["rpn.deltas"];
  const at::Tensor shape = fixture["rpn.max_shape"];
  const at::Tensor decoded = DecodeBoxes(
      rois, deltas, {1, 1, 1, 1}, shape[0].item<int>(), shape[1].item<int>());
  EXPECT_LE(RelativeError(decoded, fixture["rpn.out"]), 1e-5);
  const at::Tensor unclipped = at::empty_like(rois);
  for (int64_t i = 0; i < rois.size(0); ++i) {
    SetBox(unclipped, i,
           DecodeBox(BoxAt(rois, i), ToDeltas(deltas[i]), {1, 1, 1, 1}));
  }
  EXPECT_LE(RelativeError(unclipped, fixture["rpn.out_noclip"]), 1e-5);
}

TEST(BoxCoderTest, MovesRegionsForEachClass) {
  const Fixture fixture("delta2bbox");
  const at::Tensor shape = fixture["rcnn.max_shape"];
  const model::DetectorConfig config;
  for (int stage = 0; stage < 3; ++stage) {
    const std::string number = std::to_string(stage);
    EXPECT_EQ(ToDeltas(fixture["rcnn.stds." + number]), config.box_stds[stage]);
    const at::Tensor decoded = DecodeBoxes(
        fixture["rcnn.rois"], fixture["rcnn.deltas"], config.box_stds[stage],
        shape[0].item<int>(), shape[1].item<int>());
    EXPECT_LE(RelativeError(decoded, fixture["rcnn.out." + number]), 1e-5);
  }
}

// Returns logits [n, 6] of five classes and the background, which is last. In
// each row, the background has the largest logit and the row's label has the
// second largest.
at::Tensor LogitsOf(const at::Tensor& labels) {
  const at::Tensor logits = at::full({labels.size(0), 6}, -1.0f);
  for (int64_t i = 0; i < labels.size(0); ++i) {
    logits[i][labels[i].item<int64_t>()].fill_(2);
    logits[i][5].fill_(3);
  }
  return logits;
}

TEST(BoxCoderTest, RefinesByTheBestForegroundClass) {
  const Fixture fixture("delta2bbox");
  const at::Tensor shape = fixture["rcnn.max_shape"];
  const at::Tensor refined =
      RefineBoxes(fixture["rcnn.rois"], LogitsOf(fixture["rcnn.labels"]),
                  fixture["rcnn.deltas"], model::DetectorConfig().box_stds[0],
                  shape[0].item<int>(), shape[1].item<int>());
  EXPECT_LE(RelativeError(refined, fixture["rcnn.by_label.0"]), 1e-5);
}

TEST(BoxCoderTest, RefinesAllClassesAlikeByOneBox) {
  const Fixture fixture("delta2bbox");
  const at::Tensor rois = fixture["rcnn.rois"];
  const at::Tensor deltas = fixture["rcnn.deltas"].narrow(1, 0, 4);
  const Deltas stds = model::DetectorConfig().box_stds[0];
  const at::Tensor refined = RefineBoxes(rois, LogitsOf(fixture["rcnn.labels"]),
                                         deltas, stds, 1000, 1000);
  EXPECT_TRUE(at::equal(
      refined, DecodeBoxes(rois, deltas.contiguous(), stds, 1000, 1000)));
}

TEST_P(DetectorPartsTest, PyramidOfOddSizes) {
  const Fixture fixture("fpn_odd_sizes");
  weights::StateDict weights(fixture.Weights("neck."));
  const FeaturePyramid neck({8, 16, 24, 32}, 12, weights.root(),
                            implementation_);
  ASSERT_EQ(weights.Finish(), absl::OkStatus());
  layers::Features features;
  for (int i = 0; i < 4; ++i) {
    features.push_back(fixture["in." + std::to_string(i)]);
  }
  const layers::Features pyramid = neck.Forward(features);
  ASSERT_EQ(pyramid.size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(RelativeError(pyramid[i], fixture["out." + std::to_string(i)]),
              kTolerance)
        << "level " << i;
  }
}

TEST_P(DetectorPartsTest, BoxHeads) {
  const Fixture fixture("bbox_heads");
  for (const bool convs : {true, false}) {
    const std::string name = convs ? "conv4fc1." : "fc2.";
    model::DetectorConfig config = SmallConfig();
    config.box_convs = convs ? 4 : 0;
    config.box_fcs = convs ? 1 : 2;
    std::map<std::string, weights::TensorView> own = fixture.Weights(name);
    own.erase("out.cls");
    own.erase("out.reg");
    weights::StateDict weights(own);
    const BoxHead head(config, 5, weights.root(), implementation_);
    ASSERT_EQ(weights.Finish(), absl::OkStatus());
    const BoxOutput output = head.Forward(ChannelsLast(fixture["in"]));
    EXPECT_LE(RelativeError(output.logits, fixture[name + "out.cls"]),
              kTolerance);
    EXPECT_LE(RelativeError(output.deltas, fixture[name + "out.reg"]),
              kTolerance);
  }
}

TEST_P(DetectorPartsTest, MaskHead) {
  const Fixture fixture("mask_head");
  std::map<std::string, weights::TensorView> own = fixture.Weights("head.");
  own.erase("in");
  own.erase("out");
  weights::StateDict weights(own);
  const MaskHead head(SmallConfig(), 5, weights.root(), implementation_);
  ASSERT_EQ(weights.Finish(), absl::OkStatus());
  const at::Tensor features = ChannelsLast(fixture["head.in"]);
  for (int64_t label = 0; label < 5; ++label) {
    const at::Tensor labels = at::full({4}, label, at::kLong);
    EXPECT_LE(RelativeError(head.Forward(features, labels),
                            fixture["head.out"].select(1, label)),
              kTolerance)
        << "class " << label;
  }
}

// In bf16, values differ from the fixture, but all parts must be near it.
TEST(DetectorHalfPrecisionTest, IsClose) {
  const c10::InferenceMode guard;
  const ops::Implementation& bf16 = model::Cpu(model::Precision::kBFloat16);
  constexpr double kHalfTolerance = 0.03;
  const Fixture pyramids("fpn_odd_sizes"), boxes("bbox_heads");
  weights::StateDict neck_weights(pyramids.Weights("neck."));
  const FeaturePyramid neck({8, 16, 24, 32}, 12, neck_weights.root(), bf16);
  layers::Features features;
  for (int i = 0; i < 4; ++i) {
    features.push_back(pyramids["in." + std::to_string(i)]);
  }
  const layers::Features pyramid = neck.Forward(features);
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(RelativeError(pyramid[i], pyramids["out." + std::to_string(i)]),
              kHalfTolerance);
  }
  weights::StateDict box_weights(boxes.Weights("conv4fc1."));
  const BoxHead head(SmallConfig(), 5, box_weights.root(), bf16);
  const BoxOutput output = head.Forward(ChannelsLast(boxes["in"]));
  EXPECT_LE(RelativeError(output.logits, boxes["conv4fc1.out.cls"]),
            kHalfTolerance);
  EXPECT_LE(RelativeError(output.deltas, boxes["conv4fc1.out.reg"]),
            kHalfTolerance);
}

TEST(RoiAlignTest, ReadsTheLevelOfTheRegionsSize) {
  const Fixture fixture("roi_extractor");
  std::vector<at::Tensor> maps;
  for (int i = 0; i < 4; ++i) {
    maps.push_back(
        ChannelsLast(fixture["extract.feat." + std::to_string(i)])[0]);
  }
  const at::Tensor rois = fixture["extract.rois"].narrow(1, 1, 4);
  for (const int size : {7, 14}) {
    const at::Tensor expected = fixture["extract.out" + std::to_string(size)];
    EXPECT_LE(RelativeError(
                  ops::RoiAlign(maps, {4, 8, 16, 32},
                                rois.narrow(0, 0, expected.size(0)), size, 56),
                  expected),
              kTolerance);
  }
}

class MulticlassNmsTest : public testing::Test {
 protected:
  MulticlassNmsOptions Options() const {
    MulticlassNmsOptions options;
    options.score_threshold = fixture_["multi.score_thr"].item<float>();
    options.iou_threshold = fixture_["multi.iou_thr"].item<float>();
    options.max_kept = fixture_["multi.max_num"].item<int>();
    return options;
  }

  void ExpectReference(const std::string& name, const at::Tensor& boxes) {
    const ScoredBoxes kept =
        MulticlassNms(boxes, fixture_["multi.scores"], Options());
    const at::Tensor dets = fixture_[name + ".dets"];
    EXPECT_TRUE(at::equal(kept.labels, fixture_[name + ".labels"]));
    EXPECT_TRUE(at::equal(kept.indices, fixture_[name + ".inds"]));
    EXPECT_TRUE(at::equal(kept.boxes, dets.narrow(1, 0, 4)));
    EXPECT_TRUE(at::equal(kept.scores, dets.select(1, 4)));
  }

  const Fixture fixture_{"nms"};
};

TEST_F(MulticlassNmsTest, OfBoxesForEachClass) {
  ExpectReference("multi", fixture_["multi.boxes"]);
}

TEST_F(MulticlassNmsTest, OfOneBoxForAllClasses) {
  ExpectReference("multi4",
                  fixture_["multi.boxes"].narrow(1, 0, 4).contiguous());
}

TEST_F(MulticlassNmsTest, OnlyWantedClassesTakePart) {
  MulticlassNmsOptions options = Options();
  options.classes = {1, 3, 99};
  const ScoredBoxes kept =
      MulticlassNms(fixture_["multi.boxes"], fixture_["multi.scores"], options);
  std::set<int64_t> labels;
  for (int64_t i = 0; i < kept.labels.size(0); ++i) {
    labels.insert(kept.labels[i].item<int64_t>());
  }
  EXPECT_EQ(labels, (std::set<int64_t>{1, 3}));
  options.classes = {0};
  const ScoredBoxes first =
      MulticlassNms(fixture_["multi.boxes"], fixture_["multi.scores"], options);
  EXPECT_GT(first.labels.size(0), 0);
  EXPECT_TRUE(first.labels.eq(0).all().item<bool>());
}

TEST_F(MulticlassNmsTest, AScoreMustExceedTheThreshold) {
  const at::Tensor boxes = at::tensor({0., 0., 10., 10.}, at::kFloat);
  const at::Tensor probabilities = at::tensor({0.5, 0.25, 0.25}, at::kFloat);
  MulticlassNmsOptions options;
  options.score_threshold = 0.25f;
  const ScoredBoxes kept =
      MulticlassNms(boxes.view({1, 4}), probabilities.view({1, 3}), options);
  EXPECT_TRUE(at::equal(kept.labels, at::tensor({0}, at::kLong)));
}

// The first two boxes have different classes and overlap almost completely. The
// third box is empty and overlaps no other box.
TEST_F(MulticlassNmsTest, ClassesCompeteIfAgnostic) {
  const at::Tensor boxes =
      at::tensor({0., 0., 10., 10., 1., 0., 10., 10., 5., 5., 5., 5.},
                 at::kFloat)
          .view({3, 4});
  const at::Tensor probabilities =
      at::tensor({0.8, 0.1, 0.1, 0.2, 0.7, 0.1, 0.3, 0.1, 0.6}, at::kFloat)
          .view({3, 3});
  MulticlassNmsOptions options;
  options.score_threshold = 0.25f;
  EXPECT_EQ(MulticlassNms(boxes, probabilities, options).labels.size(0), 3);
  options.class_agnostic = true;
  const ScoredBoxes kept = MulticlassNms(boxes, probabilities, options);
  EXPECT_TRUE(at::equal(kept.indices, at::tensor({0, 4}, at::kLong)));
}

TEST_F(MulticlassNmsTest, NothingPassesANanOrAHighThreshold) {
  MulticlassNmsOptions options = Options();
  options.score_threshold = 1;
  EXPECT_EQ(
      MulticlassNms(fixture_["multi.boxes"], fixture_["multi.scores"], options)
          .boxes.size(0),
      0);
  const at::Tensor nan = at::full_like(fixture_["multi.scores"], NAN);
  EXPECT_EQ(
      MulticlassNms(fixture_["multi.boxes"], nan, Options()).boxes.size(0), 0);
}

}  // namespace
}  // namespace sfmamba::heads
