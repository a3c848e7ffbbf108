#include "model/weights/weight_shapes.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fixture.h"

namespace sfmamba::weights {
namespace {

using ::testing::HasSubstr;
using Tensors = std::map<std::string, TensorView>;

WeightShapes Read(const Tensors& tensors) {
  const auto shapes = ReadWeightShapes(tensors);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  return shapes.value_or(WeightShapes());
}

TEST(WeightShapesTest, OfACascade) {
  const Fixture fixture("cascade_mask_rcnn");
  const WeightShapes shapes = Read(fixture.Weights(""));
  EXPECT_EQ(shapes.num_classes, 5);
  EXPECT_EQ(shapes.box_stages, 3);
  EXPECT_EQ(shapes.box_convs, 4);
  EXPECT_EQ(shapes.box_fcs, 1);
  EXPECT_EQ(shapes.masks, true);
  EXPECT_EQ(shapes.mask_convs, 4);
  EXPECT_EQ(shapes.class_agnostic_boxes, false);
  EXPECT_EQ(shapes.class_agnostic_masks, false);
  EXPECT_EQ(shapes.channels, 12);
  EXPECT_EQ(shapes.fc_width, 24);
  EXPECT_EQ(shapes.anchor_ratios, 3);
  EXPECT_EQ(shapes.box_roi_size, 7);
  EXPECT_FALSE(shapes.segmentation_channels.has_value());
}

TEST(WeightShapesTest, OfASingleStageWithAndWithoutMasks) {
  const Fixture fixture("mask_rcnn");
  Tensors tensors = fixture.Weights("");
  EXPECT_EQ(Read(tensors).box_stages, 1);
  EXPECT_EQ(Read(tensors).box_convs, 0);
  EXPECT_EQ(Read(tensors).box_fcs, 2);
  EXPECT_EQ(Read(tensors).masks, true);
  for (auto it = tensors.begin(); it != tensors.end();) {
    it = absl::StrContains(it->first, "mask_head") ? tensors.erase(it)
                                                   : std::next(it);
  }
  EXPECT_EQ(Read(tensors).masks, false);
  EXPECT_FALSE(Read(tensors).mask_convs.has_value());
  EXPECT_EQ(Read(tensors).num_classes, 5);
}

TEST(WeightShapesTest, OfClassAgnosticHeads) {
  const Fixture fixture("mask_rcnn");
  Tensors tensors = fixture.Weights("");
  tensors["roi_head.bbox_head.fc_reg.weight"].shape = {4, 24};
  tensors["roi_head.mask_head.conv_logits.weight"].shape = {1, 12, 1, 1};
  EXPECT_EQ(Read(tensors).class_agnostic_boxes, true);
  EXPECT_EQ(Read(tensors).class_agnostic_masks, true);
}

TEST(WeightShapesTest, OneClassHasItsOwnBoxAndMask) {
  const Fixture fixture("mask_rcnn");
  Tensors tensors = fixture.Weights("");
  tensors["roi_head.bbox_head.fc_cls.weight"].shape = {2, 24};
  tensors["roi_head.bbox_head.fc_reg.weight"].shape = {4, 24};
  tensors["roi_head.mask_head.conv_logits.weight"].shape = {1, 12, 1, 1};
  EXPECT_EQ(Read(tensors).num_classes, 1);
  EXPECT_EQ(Read(tensors).class_agnostic_boxes, false);
  EXPECT_EQ(Read(tensors).class_agnostic_masks, false);
}

// Returns the names and shapes of a VMamba classifier's tensors, without data.
Tensors VMambaTensors(int64_t dim, int64_t ratio,
                      const std::array<int, 4>& depths) {
  Tensors tensors;
  const auto add = [&](const std::string& key, std::vector<int64_t> shape) {
    tensors[key].shape = std::move(shape);
  };
  add("patch_embed.0.weight", {dim / 2, 3, 3, 3});
  add("patch_embed.5.weight", {dim, dim / 2, 3, 3});
  add("classifier.head.weight", {10, 8 * dim});
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = dim << stage, inner = ratio * width;
    for (int block = 0; block < depths[stage]; ++block) {
      const std::string key =
          absl::StrCat("layers.", stage, ".blocks.", block, ".");
      add(key + "op.in_proj.weight", {inner, width});
      add(key + "op.conv2d.weight", {inner, 1, 3, 3});
      add(key + "op.x_proj_weight", {4, (width + 15) / 16 + 2, inner});
      add(key + "op.A_logs", {4 * inner, 1});
      add(key + "mlp.fc1.weight", {4 * width, width});
    }
  }
  return tensors;
}

TEST(WeightShapesTest, OfVMamba) {
  const Tensors tensors = VMambaTensors(96, 2, {2, 2, 15, 2});
  ASSERT_TRUE(IsVMamba(tensors));
  const auto shapes = ReadVMambaShapes(tensors);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(shapes->dim, 96);
  EXPECT_EQ(shapes->ssm_ratio, 2);
  EXPECT_EQ(shapes->depths, (std::array{2, 2, 15, 2}));
  EXPECT_EQ(shapes->num_classes, 10);
}

TEST(WeightShapesTest, OfVMambaUnderOtherNames) {
  for (const char* name : {"vmamba_hf", "vmamba_old_names"}) {
    SCOPED_TRACE(name);
    const Fixture fixture(name, "open_weights");
    const Tensors tensors = fixture.Weights("");
    ASSERT_TRUE(IsVMamba(tensors));
    const auto shapes = ReadVMambaShapes(tensors);
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    EXPECT_EQ(shapes->dim, 8);
    EXPECT_EQ(shapes->ssm_ratio, 1);
    EXPECT_EQ(shapes->depths, (std::array{1, 1, 1, 1}));
  }
}

TEST(WeightShapesTest, OtherVMambasAreRefusedByATensor) {
  struct Case {
    const char* key;
    std::vector<int64_t> shape;  // Empty if missing.
    const char* message;
  };
  const std::string block = "layers.0.blocks.0.";
  for (const Case& each : {
           Case{"layers.0.blocks.0.op.in_proj.weight",
                {16, 8},
                "got 16 rows, expected 8: it has a gate"},
           Case{"patch_embed.0.weight",
                {4, 3, 4, 4},
                "got 4 pixels a side, expected 3"},
           Case{"patch_embed.5.weight", {}, "missing"},
           Case{"layers.0.downsample.reduction.weight",
                {16, 32},
                "got one, expected none"},
           Case{"layers.0.blocks.0.op.conv2d.bias",
                {8},
                "got one, expected none"},
           Case{"layers.1.blocks.0.op.out_norm.0.weight",
                {16},
                "got one, expected none"},
           Case{"layers.1.blocks.0.op.out_norm.1.weight",
                {16},
                "got one, expected none"},
           Case{"layers.0.blocks.0.mlp.fc1.weight", {}, "missing"},
           Case{"layers.0.blocks.0.op.A_logs",
                {32, 20},
                "got 20 states, expected 1"},
           Case{"layers.0.blocks.0.op.conv2d.weight",
                {24, 1, 3, 3},
                "got 24 channels, expected 8 or 16"},
       }) {
    SCOPED_TRACE(each.key);
    Tensors tensors = VMambaTensors(8, 1, {1, 1, 1, 1});
    if (each.shape.empty()) {
      tensors.erase(each.key);
    } else {
      tensors[each.key].shape = each.shape;
    }
    if (each.shape == std::vector<int64_t>{24, 1, 3, 3}) {
      tensors[block + "op.in_proj.weight"].shape = {24, 8};
    }
    const auto shapes = ReadVMambaShapes(tensors);
    EXPECT_EQ(shapes.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(shapes.status().message()),
                HasSubstr(absl::StrCat(each.key, ": ", each.message)));
  }
}

TEST(WeightShapesTest, ATensorWithoutAxesIsNamed) {
  for (const std::string layer : {"op.in_proj.weight", "mlp.fc1.weight"}) {
    const std::string key = "layers.0.blocks.0." + layer;
    Tensors tensors = VMambaTensors(8, 1, {1, 1, 1, 1});
    tensors[key].shape.clear();
    EXPECT_EQ(ReadVMambaShapes(tensors).status().message(),
              key + ": expected 1 axes of at least 1, got []");
  }
}

TEST(WeightShapesTest, OfASegmenter) {
  const Fixture fixture("upernet");
  const WeightShapes shapes = Read(fixture.Weights(""));
  EXPECT_EQ(shapes.num_classes, 7);
  EXPECT_EQ(shapes.segmentation_channels, 16);
  EXPECT_FALSE(shapes.box_stages.has_value());
}

TEST(WeightShapesTest, WrappersPrefixesDoNotMatter) {
  const Fixture fixture("upernet");
  Tensors wrapped;
  for (const auto& [key, view] : fixture.Weights("")) {
    wrapped["module." + key] = view;
  }
  EXPECT_EQ(Read(wrapped).num_classes, 7);
}

TEST(WeightShapesTest, OfOtherModelsNothingIsKnown) {
  const WeightShapes shapes = Read({{"head.weight", {DType::kF32, {10, 8}}}});
  EXPECT_FALSE(shapes.num_classes.has_value());
  EXPECT_FALSE(shapes.channels.has_value());
}

TEST(WeightShapesTest, AnImpossibleShapeIsNamed) {
  const Fixture fixture("cascade_mask_rcnn");
  for (const auto& [key, shape] :
       std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"rpn_head.rpn_cls.weight", {3}},
           {"rpn_head.rpn_cls.weight", {3, 0, 1, 1}},
           {"roi_head.bbox_head.0.fc_cls.weight", {int64_t{1} << 40, 24}},
           {"roi_head.bbox_head.0.shared_fcs.0.weight", {}},
       }) {
    Tensors tensors = fixture.Weights("");
    tensors[key].shape = shape;
    const absl::Status status = ReadWeightShapes(tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(key, ": expected")));
  }
  Tensors tensors = fixture.Weights("");
  tensors.erase("roi_head.bbox_head.0.fc_reg.weight");
  EXPECT_EQ(ReadWeightShapes(tensors).status().message(),
            "roi_head.bbox_head.0.fc_reg.weight: missing");
}

// Returns tensors from which the structure of a classifier with these depths
// follows.
Tensors Classifier(const std::vector<int>& depths) {
  Tensors tensors = {
      {"model.patch_embed.conv_down.0.weight",
       {DType::kF32, {32, 3, 3, 3}, {}}},
      {"model.patch_embed.conv_down.3.weight",
       {DType::kF32, {80, 32, 3, 3}, {}}},
      {"model.head.weight", {DType::kF32, {7, 640}, {}}},
      {"model.levels.3.blocks.0.mixer.qkv.weight", {DType::kF32, {9, 3}, {}}}};
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int block = 0; block < depths[stage]; ++block) {
      tensors[absl::StrCat("model.levels.", stage, ".blocks.", block,
                           ".norm1.weight")] = {DType::kF32, {80}, {}};
    }
  }
  return tensors;
}

TEST(ClassifierShapesTest, OfAHybridClassifier) {
  Tensors tensors = Classifier({1, 3, 11, 4});
  auto shapes = ReadClassifierShapes(tensors);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  EXPECT_EQ(shapes->in_dim, 32);
  EXPECT_EQ(shapes->dim, 80);
  EXPECT_EQ(shapes->depths, (std::array<int, 4>{1, 3, 11, 4}));
  EXPECT_EQ(shapes->num_classes, 7);
  EXPECT_TRUE(shapes->attention);
  EXPECT_FALSE(shapes->layer_scale);
  EXPECT_FALSE(shapes->learnable_tokens);
  // A layer scale in stages 1 and 2 must not matter.
  tensors["model.levels.0.blocks.0.gamma_1"] = {DType::kF32, {80}, {}};
  EXPECT_FALSE(ReadClassifierShapes(tensors)->layer_scale);
  tensors["model.levels.2.blocks.0.gamma_1"] = {DType::kF32, {320}, {}};
  EXPECT_TRUE(ReadClassifierShapes(tensors)->layer_scale);
}

TEST(ClassifierShapesTest, WhatIsMissingIsNamed) {
  Tensors tensors = Classifier({1, 3, 8, 4});
  tensors.erase("model.head.weight");
  const absl::Status status = ReadClassifierShapes(tensors).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("head.weight"));
  EXPECT_FALSE(ReadClassifierShapes({}).ok());
  tensors = Classifier({1, 3, 8, 4});
  tensors["model.patch_embed.conv_down.3.weight"].shape = {80};
  EXPECT_FALSE(ReadClassifierShapes(tensors).ok());
}

}  // namespace
}  // namespace sfmamba::weights
