#include "server/repository/model_config.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/settings/setting.h"

namespace sfmamba::repository {
namespace {

constexpr char kCustom[] = R"(
  backbone {
    variant: "custom" dim: 16 in_dim: 8 depths: [ 1, 1, 5, 3 ]
    num_heads: [ 1, 2, 4, 8 ] windows: [ 4, 2 ] layer_scale: true
  }
)";

// Returns the custom model with `text` merged into it.
v1::ModelConfig Proto(const std::string& text) {
  using google::protobuf::TextFormat;
  v1::ModelConfig proto;
  EXPECT_TRUE(TextFormat::ParseFromString(kCustom, &proto));
  EXPECT_TRUE(TextFormat::MergeFromString(text, &proto)) << text;
  return proto;
}

model::ModelConfig Translated(const std::string& text,
                              const weights::WeightShapes& shapes = {}) {
  const auto config = ToModelConfig(Proto(text), 2, shapes);
  EXPECT_TRUE(config.ok()) << text << ": " << config.status();
  return config.value_or(model::ModelConfig());
}

// Returns the error message of the custom model with `text`.
std::string ErrorOf(const std::string& text,
                    const weights::WeightShapes& shapes = {}) {
  return std::string(ToModelConfig(Proto(text), 2, shapes).status().message());
}

// Shapes of a detector with one box stage and no masks.
weights::WeightShapes FasterRcnn() {
  weights::WeightShapes shapes;
  shapes.num_classes = 2;
  shapes.box_stages = 1;
  shapes.box_convs = 0;
  shapes.box_fcs = 2;
  shapes.masks = false;
  shapes.class_agnostic_boxes = true;
  shapes.channels = 64;
  shapes.fc_width = 96;
  shapes.anchor_ratios = 3;
  shapes.box_roi_size = 7;
  return shapes;
}

TEST(ToModelConfigTest, WrongValuesNameTheirField) {
  EXPECT_EQ(ErrorOf(""), "");
  const std::string detection = "task: DETECTION ";
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"backbone { depths: 1 }", "backbone.depths: got 5"},
           {"input { mean: 1 mean: 2 }", "input.mean: got 2"},
           {"backbone { variant: 'sf_mamba_z' }", "backbone.variant"},
           {"backbone { stem: EFFICIENTNET_LITE0 }",
            "backbone.in_dim: got 8, expected 0 with the stem"},
           {"backbone { stem: EFFICIENTNET_LITE0 in_dim: 0 }",
            "backbone.depths[0]: got 1, expected 0 with the stem"},
           {"backbone { variant: 'vim_s' }",
            "backbone.dim: got one, expected none for vim_s"},
           {"backbone { scan: 9 }", "backbone.scan: got 9, expected UNI"},
           {"batching { max_batch_size: -1 }",
            "batching.max_batch_size: got -1, expected 1 to 4096 images"},
           {"batching { max_batch_size: 4097 }",
            "batching.max_batch_size: got 4097, expected 1 to 4096 images"},
           {"batching { max_queue_items: -1 }", "batching.max_queue_items"},
           {"batching { max_queue_bytes: -1 }", "batching.max_queue_bytes"},
           {"batching { max_queue_delay { seconds: -1 nanos: 0 } }",
            "batching.max_queue_delay"},
           {"classifier { channels: -1 }",
            "classifier.channels: got -1, expected 0 to 4096"},
           {"classifier { features: 16385 }",
            "classifier.features: got 16385, expected 0 to 16384"},
           {"classifier { channels: 8 }",
            "model custom: classifier.features: expected 1 to 16384, got 0"},
           {detection + "classifier { channels: 8 features: 8 }",
            "classifier: got one, expected none for DETECTION"},
           {"num_classes: 3", "num_classes: got 3, expected 2, the lines"},
           {"detector { }",
            "detector: got one, expected none for CLASSIFICATION"},
           {"task: CLASSIFICATION segmenter { }",
            "segmenter: got one, expected none for CLASSIFICATION"},
           {"input { short_side: 100 }", "input.short_side and long_side"},
           {"input { resize: KEEP_RATIO }", "model custom: resize"},
           {detection + "backbone { variant: 'vim_s' }", "backbone.variant"},
           {detection + "input { resize: STRETCH }", "model custom: resize"},
           {detection + "input { crop_pct: 0.9 }",
            "input.crop_pct: got 0.9, expected none for KEEP_RATIO"},
           {detection + "input { short_side: -1 }",
            "input.short_side: got -1, expected 1 to 8192 pixels"},
           {detection + "input { long_side: 9 }", "model custom: long_side"},
           {detection + "detector { channels: -1 }",
            "detector.channels: got -1, expected 1 to 4096"},
           {detection + "detector { architecture: FASTER_RCNN "
                        "mask_threshold: 0.5 }",
            "detector.mask_threshold: got one, expected none without masks"},
           {detection + "detector { box_stds { values: 1 } }",
            "detector.box_stds[0].values: got 1 values, expected 4"},
           {detection + "detector { box_stds { } }",
            "detector.box_stds[0].values: got 0 values, expected 4"},
           {detection + "detector { box_stds { values: [1, 1, 1, 1] } }",
            "model custom: detector.box_stds' count"},
           {detection + "detector { anchor_ratios: 0 }",
            "detector.anchor_ratios[0]: got 0, expected above 0"},
           {detection + "detector { score_threshold: 2 }",
            "detector.score_threshold: got 2, expected 0 to 1"},
           {"task: SEGMENTATION segmenter { channels: -1 }",
            "segmenter.channels: got -1, expected 1 to 4096"},
       }) {
    const std::string error = ErrorOf(text);
    EXPECT_EQ(error.substr(0, message.size()), message) << text;
  }
}

TEST(ToModelConfigTest, VimHasFewOfTheFields) {
  v1::ModelConfig proto;
  proto.mutable_backbone()->set_variant("vim_s");
  EXPECT_TRUE(ToModelConfig(proto, 2).ok());
  proto.mutable_backbone()->set_stem(v1::Backbone::EFFICIENTNET_LITE0);
  EXPECT_EQ(ToModelConfig(proto, 2).status().message().substr(0, 17),
            "model vim_s: stem");
  proto.mutable_backbone()->clear_stem();
  proto.mutable_backbone()->set_attention(true);
  EXPECT_EQ(ToModelConfig(proto, 2).status().message(),
            "backbone.attention: got one, expected none for vim_s");
}

TEST(ToModelConfigTest, AStemMayStandInForTheFirstStages) {
  EXPECT_EQ(Translated("").backbone.stem, model::Stem::kConvolutions);
  EXPECT_EQ(Translated("backbone { stem: CONVOLUTIONS }").backbone.stem,
            model::Stem::kConvolutions);
  v1::ModelConfig proto;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    backbone {
      variant: "custom" stem: EFFICIENTNET_LITE0 dim: 28 in_dim: 0
      depths: [ 0, 0, 4, 2 ] num_heads: [ 0, 0, 4, 8 ] windows: [ 10, 5 ]
    })",
                                                            &proto));
  const auto config = ToModelConfig(proto, 20);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->backbone.stem, model::Stem::kEfficientNetLite0);
  EXPECT_EQ(config->backbone.width(1), 40);
  proto.mutable_backbone()->set_stem(v1::Backbone::EFFICIENTNET_LITE0_STRIDE32);
  EXPECT_EQ(ToModelConfig(proto, 20).status().message(),
            "backbone.depths[2]: got 4, expected 0 with the stem "
            "EFFICIENTNET_LITE0_STRIDE32");
  proto.mutable_backbone()->set_depths(2, 0);
  EXPECT_EQ(ToModelConfig(proto, 20).status().message(),
            "model custom: dim: expected 24 with the stem "
            "efficientnet_lite0_stride32, got 28");
  proto.mutable_backbone()->set_dim(24);
  const auto longer = ToModelConfig(proto, 20);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->backbone.stem, model::Stem::kEfficientNetLite0Stride32);
}

TEST(ToModelConfigTest, SwapsAndAttentionCanBeSwitchedOff) {
  EXPECT_TRUE(Translated("").backbone.swap);
  EXPECT_TRUE(Translated("").backbone.attention);
  EXPECT_FALSE(Translated("backbone { swap: false }").backbone.swap);
  EXPECT_FALSE(Translated("backbone { attention: false }").backbone.attention);
}

TEST(ToModelConfigTest, AClassifierMayHaveLayersBeforeItsClasses) {
  EXPECT_EQ(Translated("").classifier.channels, 0);
  EXPECT_EQ(Translated("").classifier.features, 0);
  const model::ModelConfig config =
      Translated("classifier { channels: 320 features: 1280 }");
  EXPECT_EQ(config.classifier.channels, 320);
  EXPECT_EQ(config.classifier.features, 1280);
}

TEST(ToModelConfigTest, ADetectorsFieldsReplaceTheDefaults) {
  const model::ModelConfig config = Translated(R"(
    task: DETECTION
    input { short_side: 320 long_side: 480 }
    detector {
      architecture: MASK_RCNN channels: 32 fc_width: 64 anchor_scale: 4
      anchor_ratios: [ 0.5, 2 ] rpn_candidates: 50 rpn_iou_threshold: 0
      proposals: 20 finest_scale: 28 box_roi_size: 5 mask_roi_size: 10
      box_stds { values: [ 1, 2, 3, 4 ] } score_threshold: 0
      nms_iou_threshold: 0.25 max_detections: 7 mask_threshold: 0.75
    })");
  EXPECT_EQ(config.task, model::VisionTask::kDetection);
  EXPECT_EQ(config.resize, model::Resize::kKeepRatio);
  EXPECT_EQ(config.short_side, 320);
  EXPECT_EQ(config.long_side, 480);
  EXPECT_EQ(config.image_size, 320);
  EXPECT_EQ(config.pad_multiple, 32);
  EXPECT_TRUE(config.backbone.output_norms);
  EXPECT_EQ(config.backbone.windows, (std::array<int, 2>{4, 2}));
  const model::DetectorConfig& detector = config.detector;
  EXPECT_EQ(detector.box_stages, 1);
  EXPECT_EQ(detector.box_convs, 0);
  EXPECT_EQ(detector.box_fcs, 2);
  EXPECT_TRUE(detector.masks);
  EXPECT_EQ(detector.channels, 32);
  EXPECT_EQ(detector.fc_width, 64);
  EXPECT_EQ(detector.anchor_scale, 4);
  EXPECT_EQ(detector.anchor_ratios, (std::vector<float>{0.5, 2}));
  EXPECT_EQ(detector.rpn_candidates, 50);
  EXPECT_EQ(detector.rpn_iou_threshold, 0);
  EXPECT_EQ(detector.proposals, 20);
  EXPECT_EQ(detector.finest_scale, 28);
  EXPECT_EQ(detector.box_roi_size, 5);
  EXPECT_EQ(detector.mask_roi_size, 10);
  ASSERT_EQ(detector.box_stds.size(), 1);
  EXPECT_EQ(detector.box_stds[0], (std::array<float, 4>{1, 2, 3, 4}));
  EXPECT_EQ(detector.score_threshold, 0);
  EXPECT_EQ(detector.nms_iou_threshold, 0.25);
  EXPECT_EQ(detector.max_detections, 7);
  EXPECT_EQ(detector.mask_threshold, 0.75);
}

TEST(ToModelConfigTest, TheDefaultsAreThoseOfTheModelsOwnStructs) {
  const model::ModelConfig config = Translated("task: DETECTION");
  const model::ModelConfig own;
  EXPECT_EQ(config.mean, own.mean);
  EXPECT_EQ(config.std, own.std);
  EXPECT_EQ(config.precision, own.precision);
  EXPECT_EQ(config.backbone.swap, own.backbone.swap);
  EXPECT_EQ(config.backbone.attention, own.backbone.attention);
  EXPECT_EQ(config.backbone.discard, own.backbone.discard);
  EXPECT_EQ(config.backbone.scan, own.backbone.scan);
  EXPECT_EQ(config.backbone.window_mode, own.backbone.window_mode);
  EXPECT_EQ(config.backbone.stem, own.backbone.stem);
  EXPECT_EQ(config.backbone.attention_windows, own.backbone.attention_windows);
  const model::DetectorConfig& detector = config.detector;
  EXPECT_EQ(detector.channels, own.detector.channels);
  EXPECT_EQ(detector.fc_width, own.detector.fc_width);
  EXPECT_EQ(detector.anchor_scale, own.detector.anchor_scale);
  EXPECT_EQ(detector.anchor_ratios, own.detector.anchor_ratios);
  EXPECT_EQ(detector.rpn_candidates, own.detector.rpn_candidates);
  EXPECT_EQ(detector.rpn_iou_threshold, own.detector.rpn_iou_threshold);
  EXPECT_EQ(detector.proposals, own.detector.proposals);
  EXPECT_EQ(detector.finest_scale, own.detector.finest_scale);
  EXPECT_EQ(detector.box_roi_size, own.detector.box_roi_size);
  EXPECT_EQ(detector.mask_roi_size, own.detector.mask_roi_size);
  EXPECT_EQ(detector.score_threshold, own.detector.score_threshold);
  EXPECT_EQ(detector.nms_iou_threshold, own.detector.nms_iou_threshold);
  EXPECT_EQ(detector.max_detections, own.detector.max_detections);
  EXPECT_EQ(detector.mask_threshold, own.detector.mask_threshold);
  EXPECT_EQ(Translated("task: SEGMENTATION").segmentation_channels,
            own.segmentation_channels);
}

// model::Validate() also checks the values of a detector. It must accept both
// ends of each range that the proto file states.
TEST(ToModelConfigTest, TheModelTakesEachEndOfADetectorsRanges) {
  const auto& descriptor = *v1::Detector::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const auto& field = *descriptor.field(i);
    const std::string range = server::SettingOf(field).range();
    const size_t to = range.find(" to ");
    if (to == std::string::npos) continue;
    for (const std::string& end : {range.substr(0, to), range.substr(to + 4)}) {
      v1::ModelConfig proto = Proto("task: DETECTION");
      ASSERT_TRUE(
          server::SetFromText(field, end, proto.mutable_detector()).ok());
      const absl::Status status = ToModelConfig(proto, 2).status();
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST(ToModelConfigTest, TheArchitectureIsACascadeWhereNothingSaysAnother) {
  EXPECT_EQ(Translated("task: DETECTION").detector.box_stages, 3);
  EXPECT_TRUE(Translated("task: DETECTION").detector.masks);
  const model::DetectorConfig faster =
      Translated("task: DETECTION detector { architecture: FASTER_RCNN }")
          .detector;
  EXPECT_EQ(faster.box_stages, 1);
  EXPECT_EQ(faster.box_stds.size(), 1);
  EXPECT_FALSE(faster.masks);
}

TEST(ToModelConfigTest, WhatIsUnsetIsReadFromTheWeights) {
  const model::DetectorConfig detector =
      Translated("task: DETECTION", FasterRcnn()).detector;
  EXPECT_EQ(detector.box_stages, 1);
  EXPECT_EQ(detector.box_convs, 0);
  EXPECT_EQ(detector.box_fcs, 2);
  EXPECT_FALSE(detector.masks);
  EXPECT_FALSE(detector.class_agnostic_masks);
  EXPECT_TRUE(detector.class_agnostic_boxes);
  EXPECT_EQ(detector.channels, 64);
  EXPECT_EQ(detector.fc_width, 96);
  EXPECT_EQ(detector.box_stds.size(), 1);

  weights::WeightShapes segmenter;
  segmenter.num_classes = 2;
  segmenter.segmentation_channels = 24;
  EXPECT_EQ(Translated("task: SEGMENTATION", segmenter).segmentation_channels,
            24);
}

TEST(ToModelConfigTest, WhatIsSetMustBeWhatTheWeightsAre) {
  const std::string task = "task: DETECTION ";
  for (const auto& [text, message] :
       std::vector<std::pair<std::string, std::string>>{
           {"detector { channels: 64 fc_width: 96 box_roi_size: 7 }", ""},
           {"detector { architecture: FASTER_RCNN }", ""},
           {"detector { channels: 256 }",
            "detector.channels: got 256, expected 64, as model.safetensors has "
            "it"},
           {"detector { fc_width: 1024 }",
            "detector.fc_width: got 1024, expected 96"},
           {"detector { box_roi_size: 14 }",
            "detector.box_roi_size: got 14, expected 7"},
           {"detector { architecture: MASK_RCNN }",
            "detector.architecture: got MASK_RCNN, expected one of 1 box "
            "stages without masks, as model.safetensors has it"},
           {"detector { architecture: CASCADE_MASK_RCNN }",
            "detector.architecture: got CASCADE_MASK_RCNN"},
           {"detector { anchor_ratios: 1 }",
            "detector.anchor_ratios: got 1 values, expected 3"},
       }) {
    const std::string error = ErrorOf(task + text, FasterRcnn());
    EXPECT_EQ(error.substr(0, message.size()), message) << text;
    EXPECT_EQ(error.empty(), message.empty()) << error;
  }
  weights::WeightShapes other = FasterRcnn();
  other.num_classes = 80;
  EXPECT_EQ(ErrorOf(task, other),
            "num_classes: got 2, expected 80, as model.safetensors has it");
}

TEST(ToModelConfigTest, WithoutLabelsTheClassesAreTheTasks) {
  for (const auto& [text, classes] :
       std::vector<std::pair<std::string, int>>{{"", 1000},
                                                {"task: DETECTION", 80},
                                                {"task: SEGMENTATION", 150},
                                                {"num_classes: 5", 5}}) {
    EXPECT_EQ(ToModelConfig(Proto(text), 0)->num_classes, classes) << text;
  }
}

TEST(ToModelConfigTest, WindowedAttentionIsAnOverride) {
  v1::ModelConfig proto;
  proto.set_task(v1::ModelConfig::SEGMENTATION);
  proto.mutable_backbone()->set_variant("sf_mamba_b");
  proto.mutable_backbone()->add_attention_windows(32);
  proto.mutable_backbone()->add_attention_windows(0);
  const auto config = ToModelConfig(proto, 150);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->backbone.windows, (std::array<int, 2>{64, 32}));
  EXPECT_EQ(config->backbone.attention_windows, (std::array<int, 2>{32, 0}));
}

TEST(ToBatchOptionsTest, TheDefaultsAreThoseOfTheQueue) {
  const batching::BatchOptions options =
      ToBatchOptions({}, model::VisionTask::kDetection);
  const batching::BatchOptions own;
  EXPECT_EQ(options.max_queue_delay, own.max_queue_delay);
  EXPECT_EQ(options.max_queue_items, own.max_queue_items);
  EXPECT_EQ(options.max_queue_bytes, own.max_queue_bytes);
  EXPECT_EQ(options.mode, batching::BatchMode::kLatency);
}

TEST(ToBatchOptionsTest, TakesTheMode) {
  v1::Batching proto;
  proto.set_mode(v1::THROUGHPUT);
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kDetection).mode,
            batching::BatchMode::kThroughput);
}

TEST(ToBatchOptionsTest, ClassifiersHaveLargerBatchesOnGpus) {
  v1::Batching proto;
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kClassification,
                           /*on_gpus=*/true)
                .max_batch_size,
            128);
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kSegmentation,
                           /*on_gpus=*/true)
                .max_batch_size,
            4);
  proto.set_max_batch_size(9);
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kClassification,
                           /*on_gpus=*/true)
                .max_batch_size,
            9);
}

TEST(ToBatchOptionsTest, DenseTasksHaveSmallerBatches) {
  v1::Batching proto;
  EXPECT_EQ(
      ToBatchOptions(proto, model::VisionTask::kClassification).max_batch_size,
      32);
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kDetection).max_batch_size,
            4);
  EXPECT_EQ(
      ToBatchOptions(proto, model::VisionTask::kSegmentation).max_batch_size,
      4);
  proto.set_max_batch_size(9);
  EXPECT_EQ(ToBatchOptions(proto, model::VisionTask::kDetection).max_batch_size,
            9);
}

}  // namespace
}  // namespace sfmamba::repository
