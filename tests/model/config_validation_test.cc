#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config.h"

namespace sfmamba::model {
namespace {

using ::testing::HasSubstr;

ModelConfig Variant(const std::string& name) {
  absl::StatusOr<ModelConfig> config = VariantConfig(name);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(ModelConfig());
}

TEST(ValidateTest, OnEfficientNetLite0TheFieldsOfEarlierStagesAreIgnored) {
  ModelConfig config = Variant("custom");
  config.backbone.stem = Stem::kEfficientNetLite0;
  config.backbone.dim = 28;
  config.backbone.in_dim = 0;
  config.backbone.depths = {0, 0, 4, 2};
  config.backbone.num_heads = {0, 0, 4, 8};
  EXPECT_EQ(Validate(config), absl::OkStatus());
  config.backbone.depths[2] = 0;
  EXPECT_THAT(std::string(Validate(config).message()),
              HasSubstr("depths[2]: expected 1 to"));
  config.backbone.stem = Stem::kEfficientNetLite0Stride32;
  config.backbone.dim = 24;
  config.backbone.num_heads = {0, 0, 0, 6};
  config.backbone.windows = {0, 7};
  EXPECT_EQ(Validate(config), absl::OkStatus());
  config.backbone.depths[3] = 0;
  EXPECT_THAT(std::string(Validate(config).message()),
              HasSubstr("depths[3]: expected 1 to"));
}

TEST(ValidateTest, NamesTheFieldThatDoesNotFit) {
  struct Case {
    std::function<void(ModelConfig&)> change;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](ModelConfig& c) { c.num_classes = 0; }, "num_classes: expected 1 to"},
      {[](ModelConfig& c) { c.image_size = -1; }, "image_size"},
      {[](ModelConfig& c) { c.crop_pct = 0; }, "crop_pct"},
      {[](ModelConfig& c) { c.crop_pct = NAN; }, "crop_pct"},
      {[](ModelConfig& c) { c.crop_pct = 1.5; }, "got 1.5"},
      {[](ModelConfig& c) {
         c.image_size = 1 << 14;
         c.crop_pct = 0.01;
       },
       "resize_size"},
      {[](ModelConfig& c) { c.mean[1] = INFINITY; }, "mean[1]"},
      {[](ModelConfig& c) { c.std[2] = 0; }, "std[2]"},
      {[](ModelConfig& c) { c.backbone.dim = 0; }, "dim"},
      {[](ModelConfig& c) { c.backbone.dim = 1 << 20; }, "dim"},
      {[](ModelConfig& c) { c.backbone.in_dim = -3; }, "in_dim"},
      {[](ModelConfig& c) { c.backbone.stem = Stem::kEfficientNetLite0; },
       "dim: expected 28 with the stem efficientnet_lite0, got 80"},
      {[](ModelConfig& c) {
         c.backbone.stem = Stem::kEfficientNetLite0Stride32;
       },
       "dim: expected 24 with the stem efficientnet_lite0_stride32, got 80"},
      {[](ModelConfig& c) { c.backbone.depths[0] = 0; }, "depths[0]"},
      {[](ModelConfig& c) { c.backbone.depths[3] = 1000; }, "depths[3]"},
      {[](ModelConfig& c) { c.backbone.num_heads[2] = 7; },
       "num_heads[2]: expected a divisor of the width 320, got 7"},
      {[](ModelConfig& c) { c.backbone.num_heads[3] = 0; }, "num_heads[3]"},
      {[](ModelConfig& c) { c.backbone.windows[1] = 0; }, "windows[1]"},
      {[](ModelConfig& c) { c.backbone.attention_windows[0] = 4; },
       "attention_windows[0]: expected a divisor of the window 14, got 4"},
      {[](ModelConfig& c) { c.backbone.attention_windows[1] = -7; },
       "attention_windows[1]"},
      {[](ModelConfig& c) {
         c.backbone.attention_windows[0] = 7;
         c.backbone.attention = false;
       },
       "attention_windows[0]: expected 0 without attention"},
      {[](ModelConfig& c) { c.backbone.attention = c.backbone.mamba = false; },
       "attention"},
      {[](ModelConfig& c) { c.backbone.mamba = false; },
       "tokens: expected NONE without Mamba blocks, got DATA"},
      {[](ModelConfig& c) { c.backbone.scan = ScanMode::kSeries; },
       "tokens: expected NONE with a scan other than UNI, got DATA"},
      {[](ModelConfig& c) {
         c.backbone.mamba = false;
         c.backbone.tokens = Tokens::kNone;
         c.backbone.scan = ScanMode::kSeries;
       },
       "scan"},
  };
  for (const Case& c : cases) {
    ModelConfig config = Variant("sf_mamba_t");
    c.change(config);
    const absl::Status status = Validate(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("model sf_mamba_t"));
  }
}

TEST(ValidateTest, NamesTheFieldThatDoesNotFitVim) {
  struct Case {
    std::function<void(ModelConfig&)> change;
    const char* message;
  };
  const std::vector<Case> cases = {
      {[](ModelConfig& c) { c.backbone.vim_dim = 0; }, "vim_dim"},
      {[](ModelConfig& c) { c.backbone.vim_depth = 0; }, "vim_depth"},
      {[](ModelConfig& c) { c.backbone.stem = Stem::kEfficientNetLite0; },
       "stem: expected none for Vim, got efficientnet_lite0"},
      {[](ModelConfig& c) {
         c.classifier = {320, 1280};
       },
       "classifier.features: expected 0 for Vim, got 1280"},
      {[](ModelConfig& c) { c.image_size = 225; }, "image_size"},
      {[](ModelConfig& c) { c.backbone.tokens = Tokens::kLearnable; },
       "tokens"},
      {[](ModelConfig& c) { c.backbone.vim_backward = true; }, "vim_backward"},
      {[](ModelConfig& c) { c.backbone.scan = ScanMode::kSeries; }, "scan"},
  };
  for (const Case& c : cases) {
    ModelConfig config = Variant("vim_s_uni_swap");
    c.change(config);
    const absl::Status status = Validate(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(ValidateTest, NamesTheFieldThatDoesNotFitTheTask) {
  struct Case {
    VisionTask task;
    std::function<void(ModelConfig&)> change;
    const char* message;
  };
  const VisionTask kClassification = VisionTask::kClassification;
  const VisionTask kDetection = VisionTask::kDetection;
  const VisionTask kSegmentation = VisionTask::kSegmentation;
  const std::vector<Case> cases = {
      {kClassification, [](ModelConfig& c) { c.backbone.output_norms = true; },
       "output_norms: expected false for classification"},
      {kClassification, [](ModelConfig& c) { c.resize = Resize::kKeepRatio; },
       "resize: expected CENTER_CROP or STRETCH for classification, got "
       "KEEP_RATIO"},
      {kClassification, [](ModelConfig& c) { c.pad_multiple = 32; },
       "pad_multiple"},
      {kClassification, [](ModelConfig& c) { c.classifier.channels = 320; },
       "classifier.features: expected 1 to 16384, got 0"},
      {kClassification, [](ModelConfig& c) { c.classifier.features = 1280; },
       "classifier.channels: expected 1 to 4096, got 0"},
      {kClassification,
       [](ModelConfig& c) {
         c.classifier = {-1, 0};
       },
       "classifier.channels: expected 0 to 4096, got -1"},
      {kClassification,
       [](ModelConfig& c) {
         c.classifier = {5000, 1280};
       },
       "classifier.channels: expected 1 to 4096, got 5000"},
      {kSegmentation,
       [](ModelConfig& c) {
         c.classifier = {320, 1280};
       },
       "classifier.features: expected 0 for a dense task, got 1280"},
      {kDetection, [](ModelConfig& c) { c.backbone.output_norms = false; },
       "output_norms: expected true for a dense task"},
      {kDetection, [](ModelConfig& c) { c.resize = Resize::kStretch; },
       "resize"},
      {kDetection, [](ModelConfig& c) { c.pad_multiple = 0; }, "pad_multiple"},
      {kDetection, [](ModelConfig& c) { c.short_side = 0; }, "short_side"},
      {kDetection, [](ModelConfig& c) { c.long_side = 799; },
       "long_side: expected 800 to 8192, got 799"},
      {kDetection, [](ModelConfig& c) { c.num_classes = 1 << 16; },
       "num_classes"},
      {kDetection, [](ModelConfig& c) { c.detector.box_stages = 0; },
       "detector.box_stages"},
      {kDetection, [](ModelConfig& c) { c.detector.box_stages = 1; },
       "detector.box_stds' count: expected 1 to 1, got 3"},
      {kDetection, [](ModelConfig& c) { c.detector.box_stds[1][2] = 0; },
       "detector.box_stds"},
      {kDetection, [](ModelConfig& c) { c.detector.box_convs = -1; },
       "detector.box_convs"},
      {kDetection, [](ModelConfig& c) { c.detector.box_fcs = 0; },
       "detector.box_fcs"},
      {kDetection, [](ModelConfig& c) { c.detector.mask_convs = 17; },
       "detector.mask_convs"},
      {kDetection, [](ModelConfig& c) { c.detector.channels = 0; },
       "detector.channels"},
      {kDetection, [](ModelConfig& c) { c.detector.fc_width = 0; },
       "detector.fc_width"},
      {kDetection, [](ModelConfig& c) { c.detector.anchor_scale = NAN; },
       "detector.anchor_scale"},
      {kDetection, [](ModelConfig& c) { c.detector.anchor_ratios = {}; },
       "detector.anchor_ratios' count"},
      {kDetection, [](ModelConfig& c) { c.detector.anchor_ratios[2] = -1; },
       "detector.anchor_ratios"},
      {kDetection, [](ModelConfig& c) { c.detector.rpn_candidates = 0; },
       "detector.rpn_candidates"},
      {kDetection, [](ModelConfig& c) { c.detector.rpn_iou_threshold = 2; },
       "detector.rpn_iou_threshold"},
      {kDetection, [](ModelConfig& c) { c.detector.proposals = 0; },
       "detector.proposals"},
      {kDetection, [](ModelConfig& c) { c.detector.finest_scale = 0; },
       "detector.finest_scale"},
      {kDetection, [](ModelConfig& c) { c.detector.box_roi_size = 0; },
       "detector.box_roi_size"},
      {kDetection, [](ModelConfig& c) { c.detector.mask_roi_size = 65; },
       "detector.mask_roi_size"},
      {kDetection, [](ModelConfig& c) { c.detector.score_threshold = NAN; },
       "detector.score_threshold"},
      {kDetection, [](ModelConfig& c) { c.detector.nms_iou_threshold = -1; },
       "detector.nms_iou_threshold"},
      {kDetection, [](ModelConfig& c) { c.detector.max_detections = 0; },
       "detector.max_detections"},
      {kDetection, [](ModelConfig& c) { c.detector.mask_threshold = 1.5; },
       "detector.mask_threshold"},
      {kSegmentation, [](ModelConfig& c) { c.segmentation_channels = 0; },
       "segmentation_channels"},
      {kSegmentation, [](ModelConfig& c) { c.resize = Resize::kStretch; },
       "resize: expected KEEP_RATIO for a dense task"},
      {kClassification, [](ModelConfig& c) { c.resize = Resize::kKeepRatio; },
       "resize: expected CENTER_CROP or STRETCH for classification, got "
       "KEEP_RATIO"},
      {kSegmentation, [](ModelConfig& c) { c.pad_multiple = 32; },
       "pad_multiple: expected 1 to 1, got 32"},
  };
  for (const Case& c : cases) {
    ModelConfig config = *VariantConfig("sf_mamba_t", c.task);
    c.change(config);
    const absl::Status status = Validate(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(ValidateTest, FullWindowsTakeAnySubWindow) {
  ModelConfig config = Variant("sf_mamba_t");
  config.backbone.window_mode = WindowMode::kFull;
  config.backbone.attention_windows = {32, 32};
  EXPECT_EQ(Validate(config), absl::OkStatus());
}

}  // namespace
}  // namespace sfmamba::model
