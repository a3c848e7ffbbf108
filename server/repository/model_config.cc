#include "server/repository/model_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/proto_duration.h"
#include "google/protobuf/repeated_field.h"

namespace sfmamba::repository {
namespace {

// Copies `from`, which must have as many values as `to` or none.
template <typename From, typename To>
absl::Status Override(absl::string_view field,
                      const google::protobuf::RepeatedField<From>& from,
                      To* to) {
  if (from.empty()) return absl::OkStatus();
  if (static_cast<size_t>(from.size()) != to->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": got ", from.size(), " values, expected ", to->size()));
  }
  std::copy(from.begin(), from.end(), to->begin());
  return absl::OkStatus();
}

absl::Status OverrideBackbone(const v1::Backbone& proto,
                              model::BackboneConfig* backbone) {
  if (proto.dim() != 0) backbone->dim = proto.dim();
  if (proto.in_dim() != 0) backbone->in_dim = proto.in_dim();
  if (proto.has_layer_scale()) backbone->layer_scale = proto.layer_scale();
  if (proto.has_swap()) backbone->swap = proto.swap();
  if (proto.has_attention()) backbone->attention = proto.attention();
  switch (proto.stem()) {
    case v1::Backbone::CONVOLUTIONS:
      backbone->stem = model::Stem::kConvolutions;
      break;
    case v1::Backbone::EFFICIENTNET_LITE0:
      backbone->stem = model::Stem::kEfficientNetLite0;
      break;
    default:
      break;
  }
  switch (proto.tokens()) {
    case v1::Backbone::NONE:
      backbone->tokens = model::Tokens::kNone;
      break;
    case v1::Backbone::DATA:
      backbone->tokens = model::Tokens::kData;
      break;
    case v1::Backbone::LEARNABLE:
      backbone->tokens = model::Tokens::kLearnable;
      break;
    default:
      break;
  }
  switch (proto.discard()) {
    case v1::Backbone::BEFORE_ATTN:
      backbone->discard = model::Discard::kBeforeAttention;
      break;
    case v1::Backbone::AFTER_FIRST_ATTN:
      backbone->discard = model::Discard::kAfterFirstAttention;
      break;
    case v1::Backbone::AFTER_ATTN:
      backbone->discard = model::Discard::kAfterAttention;
      break;
    default:
      break;
  }
  switch (proto.scan()) {
    case v1::Backbone::UNI:
      backbone->scan = model::ScanMode::kUni;
      break;
    case v1::Backbone::SERIES:
      backbone->scan = model::ScanMode::kSeries;
      break;
    case v1::Backbone::SERIES_GAP:
      backbone->scan = model::ScanMode::kSeriesGap;
      break;
    case v1::Backbone::PARALLEL_CAT:
      backbone->scan = model::ScanMode::kParallelCat;
      break;
    case v1::Backbone::PARALLEL_ADD:
      backbone->scan = model::ScanMode::kParallelAdd;
      break;
    case v1::Backbone::PARALLEL_ADD_VIM:
      backbone->scan = model::ScanMode::kParallelAddVim;
      break;
    default:
      break;
  }
  switch (proto.window_mode()) {
    case v1::Backbone::FIXED:
      backbone->window_mode = model::WindowMode::kFixed;
      break;
    case v1::Backbone::FULL:
      backbone->window_mode = model::WindowMode::kFull;
      break;
    default:
      break;
  }
  absl::Status status =
      Override("backbone.depths", proto.depths(), &backbone->depths);
  status.Update(
      Override("backbone.num_heads", proto.num_heads(), &backbone->num_heads));
  status.Update(
      Override("backbone.windows", proto.windows(), &backbone->windows));
  status.Update(Override("backbone.attention_windows",
                         proto.attention_windows(),
                         &backbone->attention_windows));
  return status;
}

// Sets `to` to what is stated (not 0), else to what the weights say, if they
// do.
absl::Status Merge(absl::string_view field, int stated,
                   const std::optional<int>& weights, int* to) {
  if (stated != 0 && weights.has_value() && stated != *weights) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got ", stated, ", expected ", *weights, ", as ",
                     kWeightsFile, " has it"));
  }
  if (stated != 0) {
    *to = stated;
  } else if (weights.has_value()) {
    *to = *weights;
  }
  return absl::OkStatus();
}

template <typename T>
void Set(T stated, T* to) {
  if (stated != 0) *to = stated;
}

absl::Status SetArchitecture(v1::Detector::Architecture stated,
                             const weights::WeightShapes& shapes,
                             model::DetectorConfig* config) {
  if (stated == v1::Detector::MASK_RCNN ||
      stated == v1::Detector::FASTER_RCNN) {
    config->box_stages = 1;
    config->box_convs = 0;
    config->box_fcs = 2;
    config->masks = stated == v1::Detector::MASK_RCNN;
  }
  if (!shapes.box_stages.has_value()) return absl::OkStatus();
  const bool cascade = *shapes.box_stages > 1;
  if (stated != v1::Detector::ARCHITECTURE_UNSPECIFIED &&
      (cascade != (stated == v1::Detector::CASCADE_MASK_RCNN) ||
       *shapes.masks != (stated != v1::Detector::FASTER_RCNN))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "detector.architecture: got ", v1::Detector::Architecture_Name(stated),
        ", expected one of ", *shapes.box_stages, " box stages with",
        *shapes.masks ? "" : "out", " masks, as ", kWeightsFile, " has it"));
  }
  config->box_stages = *shapes.box_stages;
  config->box_convs = *shapes.box_convs;
  config->box_fcs = *shapes.box_fcs;
  config->masks = *shapes.masks;
  config->mask_convs = shapes.mask_convs.value_or(config->mask_convs);
  config->class_agnostic_boxes = *shapes.class_agnostic_boxes;
  config->class_agnostic_masks = shapes.class_agnostic_masks.value_or(false);
  return absl::OkStatus();
}

absl::Status SetBoxStds(
    const google::protobuf::RepeatedPtrField<v1::Detector::Stds>& stated,
    model::DetectorConfig* config) {
  if (stated.empty()) {
    if (config->box_stds.size() > config->box_stages) {
      config->box_stds.resize(config->box_stages);
    }
    return absl::OkStatus();
  }
  config->box_stds.resize(stated.size());
  absl::Status status;
  for (int i = 0; i < stated.size(); ++i) {
    const std::string field = absl::StrCat("detector.box_stds[", i, "].values");
    if (stated[i].values().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, ": got 0 values, expected 4"));
    }
    status.Update(Override(field, stated[i].values(), &config->box_stds[i]));
  }
  return status;
}

absl::Status SetAnchorRatios(
    const google::protobuf::RepeatedField<float>& stated,
    const weights::WeightShapes& shapes, model::DetectorConfig* config) {
  if (!stated.empty()) {
    config->anchor_ratios.assign(stated.begin(), stated.end());
  }
  const int count = config->anchor_ratios.size();
  if (shapes.anchor_ratios.value_or(count) == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("detector.anchor_ratios: got ", count, " values, expected ",
                   *shapes.anchor_ratios, ", as ", kWeightsFile, " has it"));
}

absl::Status OverrideDetector(const v1::Detector& proto,
                              const weights::WeightShapes& shapes,
                              model::DetectorConfig* config) {
  absl::Status status = SetArchitecture(proto.architecture(), shapes, config);
  status.Update(SetBoxStds(proto.box_stds(), config));
  status.Update(SetAnchorRatios(proto.anchor_ratios(), shapes, config));
  status.Update(Merge("detector.channels", proto.channels(), shapes.channels,
                      &config->channels));
  status.Update(Merge("detector.fc_width", proto.fc_width(), shapes.fc_width,
                      &config->fc_width));
  status.Update(Merge("detector.box_roi_size", proto.box_roi_size(),
                      shapes.box_roi_size, &config->box_roi_size));
  Set(proto.mask_roi_size(), &config->mask_roi_size);
  Set(proto.anchor_scale(), &config->anchor_scale);
  Set(proto.rpn_candidates(), &config->rpn_candidates);
  Set(proto.proposals(), &config->proposals);
  Set(proto.finest_scale(), &config->finest_scale);
  Set(proto.max_detections(), &config->max_detections);
  // These may be 0.
  if (proto.has_rpn_iou_threshold()) {
    config->rpn_iou_threshold = proto.rpn_iou_threshold();
  }
  if (proto.has_score_threshold()) {
    config->score_threshold = proto.score_threshold();
  }
  if (proto.has_nms_iou_threshold()) {
    config->nms_iou_threshold = proto.nms_iou_threshold();
  }
  if (proto.has_mask_threshold()) {
    config->mask_threshold = proto.mask_threshold();
  }
  return status;
}

absl::Status OverrideInput(const v1::Input& proto, model::ModelConfig* config) {
  const bool dense = config->task != model::VisionTask::kClassification;
  if (!dense && (proto.short_side() != 0 || proto.long_side() != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.short_side and long_side: got ", proto.short_side(), " and ",
        proto.long_side(), ", expected neither for CLASSIFICATION"));
  }
  Set(proto.short_side(), &config->short_side);
  Set(proto.long_side(), &config->long_side);
  if (dense) config->image_size = config->Padded(config->short_side);
  Set(proto.size(), &config->image_size);
  Set(proto.crop_pct(), &config->crop_pct);
  switch (proto.resize()) {
    case v1::Input::CENTER_CROP:
      config->resize = model::Resize::kCenterCrop;
      break;
    case v1::Input::STRETCH:
      config->resize = model::Resize::kStretch;
      break;
    case v1::Input::KEEP_RATIO:
      config->resize = model::Resize::kKeepRatio;
      break;
    default:
      break;
  }
  absl::Status status = Override("input.mean", proto.mean(), &config->mean);
  status.Update(Override("input.std", proto.std(), &config->std));
  return status;
}

absl::Status OverrideClasses(int stated, int labels,
                             const weights::WeightShapes& shapes,
                             model::ModelConfig* config) {
  if (labels > 0) config->num_classes = labels;
  if (stated != 0) config->num_classes = stated;
  if (labels > 0 && config->num_classes != labels) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_classes: got ", config->num_classes, ", expected ",
                     labels, ", the lines of ", kLabelsFile));
  }
  return Merge("num_classes", config->num_classes, shapes.num_classes,
               &config->num_classes);
}

// The parts of `proto` that only one task has must be that task's.
absl::Status CheckParts(const v1::ModelConfig& proto, model::VisionTask task) {
  const auto refuse = [&](absl::string_view field) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got one, expected none for ",
                     v1::ModelConfig::Task_Name(proto.task())));
  };
  if (proto.has_detector() && task != model::VisionTask::kDetection) {
    return refuse("detector");
  }
  if (proto.has_segmenter() && task != model::VisionTask::kSegmentation) {
    return refuse("segmenter");
  }
  return absl::OkStatus();
}

}  // namespace

model::VisionTask ToTask(v1::ModelConfig::Task task) {
  switch (task) {
    case v1::ModelConfig::DETECTION:
      return model::VisionTask::kDetection;
    case v1::ModelConfig::SEGMENTATION:
      return model::VisionTask::kSegmentation;
    default:
      return model::VisionTask::kClassification;
  }
}

absl::StatusOr<model::ModelConfig> ToModelConfig(
    const v1::ModelConfig& proto, int classes,
    const weights::WeightShapes& shapes) {
  const model::VisionTask task = ToTask(proto.task());
  absl::StatusOr<model::ModelConfig> config =
      model::VariantConfig(proto.backbone().variant(), task);
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("backbone.variant: ", config.status().message()));
  }
  absl::Status status = CheckParts(proto, task);
  status.Update(OverrideBackbone(proto.backbone(), &config->backbone));
  status.Update(OverrideInput(proto.input(), &*config));
  status.Update(
      OverrideClasses(proto.num_classes(), classes, shapes, &*config));
  if (task == model::VisionTask::kDetection) {
    status.Update(
        OverrideDetector(proto.detector(), shapes, &config->detector));
  }
  if (task == model::VisionTask::kSegmentation) {
    status.Update(Merge("segmenter.channels", proto.segmenter().channels(),
                        shapes.segmentation_channels,
                        &config->segmentation_channels));
  }
  if (proto.precision() == v1::BF16)
    config->precision = model::Precision::kBFloat16;
  if (proto.precision() == v1::FP16)
    config->precision = model::Precision::kFloat16;
  status.Update(model::Validate(*config));
  if (!status.ok()) return status;
  return config;
}

absl::StatusOr<batching::BatchOptions> ToBatchOptions(const v1::Batching& proto,
                                                      model::VisionTask task) {
  const auto refuse = [](absl::string_view field, auto got) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batching.", field, ": got ", got, ", expected a positive value"));
  };
  batching::BatchOptions options;
  options.max_batch_size = task == model::VisionTask::kClassification ? 32 : 4;
  if (proto.max_batch_size() < 0 || proto.max_batch_size() > 4096) {
    return refuse("max_batch_size", proto.max_batch_size());
  }
  if (proto.max_batch_size() > 0) {
    options.max_batch_size = proto.max_batch_size();
  }
  if (proto.has_max_queue_delay()) {
    options.max_queue_delay = base::FromProto(proto.max_queue_delay());
    if (options.max_queue_delay < absl::ZeroDuration()) {
      return refuse("max_queue_delay",
                    absl::FormatDuration(options.max_queue_delay));
    }
  }
  if (proto.max_queue_items() < 0) {
    return refuse("max_queue_items", proto.max_queue_items());
  }
  if (proto.max_queue_items() > 0) {
    options.max_queue_items = proto.max_queue_items();
  }
  if (proto.max_queue_bytes() < 0) {
    return refuse("max_queue_bytes", proto.max_queue_bytes());
  }
  if (proto.max_queue_bytes() > 0) {
    options.max_queue_bytes = proto.max_queue_bytes();
  }
  return options;
}

}  // namespace sfmamba::repository
