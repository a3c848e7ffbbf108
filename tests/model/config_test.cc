#include "model/config.h"

#include <cmath>
#include <functional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelConfig Variant(const std::string& name) {
  absl::StatusOr<ModelConfig> config = VariantConfig(name);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(ModelConfig());
}

TEST(VariantConfigTest, EveryNameIsKnownAndValid) {
  const std::vector<std::string> names = VariantNames();
  EXPECT_EQ(names.size(), 11 + 11 + 4 + 1);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
            names.size());
  for (const std::string& name : names) {
    const ModelConfig config = Variant(name);
    EXPECT_EQ(config.variant, name);
    EXPECT_EQ(Validate(config), absl::OkStatus());
    EXPECT_EQ(config.num_classes, 1000);
  }
}

TEST(VariantConfigTest, UnknownNamesAreNotFound) {
  for (const char* name : {"", "t", "sf_mamba_", "sf_mamba_x", "mamba_vision",
                           "sf_mamba_t ", "SF_MAMBA_T", "vim"}) {
    const absl::Status status = VariantConfig(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("sf_mamba_t2"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("vim_s_uni_swap"));
  }
}

TEST(VariantConfigTest, SmallIsAsPublished) {
  const ModelConfig config = Variant("sf_mamba_s");
  EXPECT_EQ(config.backbone.dim, 96);
  EXPECT_EQ(config.backbone.in_dim, 64);
  EXPECT_THAT(config.backbone.depths, ElementsAre(3, 3, 7, 5));
  EXPECT_THAT(config.backbone.num_heads, ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(config.backbone.windows, ElementsAre(14, 7));
  EXPECT_FALSE(config.backbone.layer_scale);
  EXPECT_EQ(config.backbone.tokens, Tokens::kData);
  EXPECT_TRUE(config.backbone.swap);
  EXPECT_EQ(config.backbone.discard, Discard::kAfterFirstAttention);
  EXPECT_EQ(config.image_size, 224);
}

TEST(VariantConfigTest, LargestIsAsPublished) {
  const ModelConfig config = Variant("mamba_vision_l3_512_21k");
  EXPECT_EQ(config.backbone.dim, 256);
  EXPECT_THAT(config.backbone.depths, ElementsAre(3, 3, 20, 10));
  EXPECT_THAT(config.backbone.num_heads, ElementsAre(4, 8, 16, 32));
  EXPECT_THAT(config.backbone.windows, ElementsAre(32, 16));
  EXPECT_TRUE(config.backbone.layer_scale);
  EXPECT_EQ(config.backbone.tokens, Tokens::kNone);
}

TEST(VariantConfigTest, ImagesAreResizedAsPublished) {
  struct Case {
    const char* variant;
    int resize, crop;
    Resize mode;
  };
  for (const Case& c : std::vector<Case>{
           {"sf_mamba_t", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_t2", 228, 224, Resize::kCenterCrop},
           {"sf_mamba_s", 240, 224, Resize::kCenterCrop},
           {"sf_mamba_b_21k", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_l2", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_l3_256_21k", 256, 256, Resize::kCenterCrop},
           {"sf_mamba_l2_512_21k", 550, 512, Resize::kStretch},
           {"mamba_vision_l3_512_21k", 550, 512, Resize::kStretch},
           {"vim_s", 256, 224, Resize::kCenterCrop},
       }) {
    const ModelConfig config = Variant(c.variant);
    EXPECT_EQ(config.resize_size(), c.resize) << c.variant;
    EXPECT_EQ(config.image_size, c.crop) << c.variant;
    EXPECT_EQ(config.resize, c.mode) << c.variant;
  }
}

TEST(VariantConfigTest, DenseTasksHaveTheirRegions) {
  struct Case {
    const char* variant;
    VisionTask task;
    int stage3, stage4;
  };
  const VisionTask kDetection = VisionTask::kDetection;
  const VisionTask kSegmentation = VisionTask::kSegmentation;
  for (const Case& c : std::vector<Case>{
           {"sf_mamba_t", kDetection, 84, 42},
           {"sf_mamba_s", kDetection, 84, 42},
           {"sf_mamba_b", kDetection, 84, 42},
           {"custom", kDetection, 84, 42},
           {"mamba_vision_t", kDetection, 112, 56},
           {"mamba_vision_s", kDetection, 112, 56},
           {"mamba_vision_b", kDetection, 112, 56},
           {"sf_mamba_t", kSegmentation, 64, 32},
           {"sf_mamba_s", kSegmentation, 64, 32},
           {"sf_mamba_b", kSegmentation, 64, 32},
           {"mamba_vision_t", kSegmentation, 64, 32},
           {"mamba_vision_s", kSegmentation, 160, 56},
           {"mamba_vision_b", kSegmentation, 64, 32},
           {"mamba_vision_l3_512_21k", kSegmentation, 64, 32},
       }) {
    const ModelConfig config = *VariantConfig(c.variant, c.task);
    EXPECT_EQ(Validate(config), absl::OkStatus());
    EXPECT_EQ(config.variant, c.variant);
    EXPECT_EQ(config.task, c.task);
    EXPECT_THAT(config.backbone.windows, ElementsAre(c.stage3, c.stage4))
        << c.variant;
    EXPECT_THAT(config.backbone.attention_windows, ElementsAre(0, 0));
    EXPECT_TRUE(config.backbone.output_norms);
    EXPECT_EQ(config.backbone.layer_scale,
              Variant(c.variant).backbone.layer_scale);
  }
}

TEST(VariantConfigTest, DenseTasksKeepTheRatio) {
  const ModelConfig detector =
      *VariantConfig("sf_mamba_t", VisionTask::kDetection);
  EXPECT_EQ(detector.resize, Resize::kKeepRatio);
  EXPECT_EQ(detector.short_side, 800);
  EXPECT_EQ(detector.long_side, 1333);
  EXPECT_EQ(detector.num_classes, 80);
  const ModelConfig segmenter =
      *VariantConfig("mamba_vision_b", VisionTask::kSegmentation);
  EXPECT_EQ(segmenter.resize, Resize::kKeepRatio);
  EXPECT_EQ(segmenter.short_side, 512);
  EXPECT_EQ(segmenter.long_side, 2048);
  EXPECT_EQ(segmenter.num_classes, 150);
  const ModelConfig largest =
      *VariantConfig("mamba_vision_l3_512_21k", VisionTask::kSegmentation);
  EXPECT_EQ(largest.short_side, 640);
  EXPECT_EQ(largest.long_side, 2560);
}

TEST(VariantConfigTest, OnlyDetectorsPad) {
  const ModelConfig detector =
      *VariantConfig("sf_mamba_t", VisionTask::kDetection);
  const ModelConfig segmenter =
      *VariantConfig("sf_mamba_t", VisionTask::kSegmentation);
  struct Case {
    int side, padded;
  };
  for (const Case& c : std::vector<Case>{
           {1067, 1088}, {1199, 1216}, {1333, 1344}, {750, 768}, {800, 800}}) {
    EXPECT_EQ(detector.Padded(c.side), c.padded);
    EXPECT_EQ(segmenter.Padded(c.side), c.side);
  }
}

TEST(VariantConfigTest, VimHasNoDenseTask) {
  for (const VisionTask task :
       {VisionTask::kDetection, VisionTask::kSegmentation}) {
    EXPECT_EQ(VariantConfig("vim_s", task).status().code(),
              absl::StatusCode::kUnimplemented);
  }
  EXPECT_TRUE(VariantConfig("vim_s", VisionTask::kClassification).ok());
}

TEST(VariantConfigTest, VimVariantsDifferInWidthDirectionAndTokens) {
  EXPECT_EQ(Variant("vim_t").backbone.vim_dim, 192);
  EXPECT_EQ(Variant("vim_s").backbone.vim_dim, 384);
  EXPECT_TRUE(Variant("vim_s").backbone.vim_backward);
  EXPECT_EQ(Variant("vim_s_uni").backbone.vim_dim, 400);
  EXPECT_FALSE(Variant("vim_s_uni").backbone.vim_backward);
  EXPECT_EQ(Variant("vim_s_uni").backbone.tokens, Tokens::kNone);
  EXPECT_EQ(Variant("vim_s_uni_swap").backbone.tokens, Tokens::kData);
}

TEST(BackboneConfigTest, MambaBlocksAreTheLargerHalf) {
  struct Case {
    const char* variant;
    int stage3, stage4;
  };
  for (const Case& c : std::vector<Case>{{"sf_mamba_t", 4, 2},
                                         {"sf_mamba_t2", 6, 2},
                                         {"sf_mamba_s", 4, 3},
                                         {"sf_mamba_b", 5, 3},
                                         {"sf_mamba_l2", 6, 3},
                                         {"sf_mamba_l3_256_21k", 10, 5}}) {
    const BackboneConfig config = Variant(c.variant).backbone;
    EXPECT_EQ(config.mamba_blocks(2), c.stage3) << c.variant;
    EXPECT_EQ(config.mamba_blocks(3), c.stage4) << c.variant;
  }
  BackboneConfig config;
  config.attention = false;
  EXPECT_EQ(config.mamba_blocks(2), 8);
  config.attention = true;
  config.mamba = false;
  EXPECT_EQ(config.mamba_blocks(2), 0);
}

TEST(BackboneConfigTest, EachStageDoublesTheWidth) {
  const BackboneConfig config;
  EXPECT_EQ(config.width(0), 80);
  EXPECT_EQ(config.width(3), 640);
}

TEST(BackboneConfigTest, EfficientNetLite0HasWidthsOfItsOwn) {
  BackboneConfig config;
  config.stem = Stem::kEfficientNetLite0;
  config.dim = 28;
  EXPECT_EQ(config.width(0), 24);
  EXPECT_EQ(config.width(1), 40);
  EXPECT_EQ(config.width(2), 112);
  EXPECT_EQ(config.width(3), 224);
  EXPECT_EQ(config.feature_width(), 224);
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
       "tokens: expected none without Mamba blocks"},
      {[](ModelConfig& c) { c.backbone.scan = ScanMode::kSeries; },
       "tokens: expected none with an ablation"},
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
       "resize"},
      {kClassification, [](ModelConfig& c) { c.pad_multiple = 32; },
       "pad_multiple"},
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
