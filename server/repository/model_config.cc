#include "server/repository/model_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/proto_duration.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/repeated_field.h"
#include "server/repository/version_files.h"
#include "server/settings/setting.h"

namespace sfmamba::repository {
namespace {

// Each of these lists belongs to one architecture. It contains the fields of
// Backbone that may be set for this architecture. model::Validate() checks the
// values of these fields.
constexpr absl::string_view kVimFields[] = {"variant", "tokens", "swap", "scan",
                                            "stem"};
constexpr absl::string_view kMambaOutFields[] = {"variant", "depths"};
constexpr absl::string_view kVMambaFields[] = {"variant", "dim", "depths"};

template <typename T>
void Set(T stated, T* to) {
  if (stated != 0) *to = stated;
}

// Sets `to` to the model's enum value for the proto value `stated`. Leaves `to`
// unchanged if `stated` is unset.
template <typename From, typename To, size_t n>
void Translate(From stated, const std::pair<From, To> (&values)[n], To* to) {
  for (const auto& [from, value] : values) {
    if (from == stated) *to = value;
  }
}

// Copies `from` to `to` unless `from` is empty. Returns INVALID_ARGUMENT if
// `from` has more or fewer values than `to`.
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

// Returns a copy of `proto` with defaults for all unset fields.
template <typename Message>
Message WithDefaults(Message proto) {
  server::SetDefaults(&proto);
  return proto;
}

// Checks that no fields except `known` are set. The network would ignore all
// other fields. This function is not called for MambaVision and SF-Mamba, which
// use all fields.
absl::Status CheckFields(const v1::Backbone& proto,
                         absl::Span<const absl::string_view> known) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  proto.GetReflection()->ListFields(proto, &fields);
  for (const auto* field : fields) {
    if (absl::c_linear_search(known, field->name())) continue;
    return absl::InvalidArgumentError(absl::StrCat("backbone.", field->name(),
                                                   ": got one, expected none ",
                                                   "for ", proto.variant()));
  }
  return absl::OkStatus();
}

// An EfficientNet-Lite0 stem replaces the first layers of the backbone,
// including its first `stages` stages. This function checks that `in_dim` and
// the depths of these stages are not set. For other stems, `stages` is 0 and
// nothing is checked.
absl::Status CheckStemParts(const v1::Backbone& proto, int stages) {
  if (stages == 0) return absl::OkStatus();
  const auto refuse = [&](absl::string_view field, int got) {
    return absl::InvalidArgumentError(absl::StrCat(
        "backbone.", field, ": got ", got, ", expected 0 with the stem ",
        v1::Backbone::Stem_Name(proto.stem())));
  };
  if (proto.in_dim() != 0) return refuse("in_dim", proto.in_dim());
  for (int i = 0; i < std::min(stages, proto.depths_size()); ++i) {
    if (proto.depths(i) != 0) {
      return refuse(absl::StrCat("depths[", i, "]"), proto.depths(i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBackboneParts(const v1::Backbone& proto,
                                const model::BackboneConfig& backbone) {
  switch (backbone.architecture) {
    case model::Architecture::kVim:
      return CheckFields(proto, kVimFields);
    case model::Architecture::kMambaOut:
      return CheckFields(proto, kMambaOutFields);
    case model::Architecture::kEfficientVim:
      return CheckFields(proto, {"variant"});
    case model::Architecture::kVMamba:
      return CheckFields(proto, kVMambaFields);
    case model::Architecture::kHybrid:
      break;
  }
  return CheckStemParts(proto, backbone.first_stage());
}

absl::Status OverrideBackbone(const v1::Backbone& stated,
                              model::BackboneConfig* backbone) {
  const v1::Backbone proto = WithDefaults(stated);
  Set(proto.dim(), &backbone->dim);
  Set(proto.in_dim(), &backbone->in_dim);
  if (proto.has_layer_scale()) backbone->layer_scale = proto.layer_scale();
  backbone->swap = proto.swap();
  backbone->attention = proto.attention();
  Translate(
      proto.stem(),
      {{v1::Backbone::CONVOLUTIONS, model::Stem::kConvolutions},
       {v1::Backbone::EFFICIENTNET_LITE0, model::Stem::kEfficientNetLite0},
       {v1::Backbone::EFFICIENTNET_LITE0_STRIDE32,
        model::Stem::kEfficientNetLite0Stride32}},
      &backbone->stem);
  absl::Status status = CheckBackboneParts(stated, *backbone);
  Translate(proto.tokens(),
            {{v1::Backbone::NONE, model::Tokens::kNone},
             {v1::Backbone::DATA, model::Tokens::kData},
             {v1::Backbone::LEARNABLE, model::Tokens::kLearnable}},
            &backbone->tokens);
  Translate(
      proto.discard(),
      {{v1::Backbone::BEFORE_ATTN, model::Discard::kBeforeAttention},
       {v1::Backbone::AFTER_FIRST_ATTN, model::Discard::kAfterFirstAttention},
       {v1::Backbone::AFTER_ATTN, model::Discard::kAfterAttention}},
      &backbone->discard);
  Translate(
      proto.scan(),
      {{v1::Backbone::UNI, model::ScanMode::kUni},
       {v1::Backbone::SERIES, model::ScanMode::kSeries},
       {v1::Backbone::SERIES_GAP, model::ScanMode::kSeriesGap},
       {v1::Backbone::PARALLEL_CAT, model::ScanMode::kParallelCat},
       {v1::Backbone::PARALLEL_ADD, model::ScanMode::kParallelAdd},
       {v1::Backbone::PARALLEL_ADD_VIM, model::ScanMode::kParallelAddVim}},
      &backbone->scan);
  Translate(proto.window_mode(),
            {{v1::Backbone::FIXED, model::WindowMode::kFixed},
             {v1::Backbone::FULL, model::WindowMode::kFull}},
            &backbone->window_mode);
  status.Update(Override("backbone.depths", proto.depths(), &backbone->depths));
  status.Update(
      Override("backbone.num_heads", proto.num_heads(), &backbone->num_heads));
  status.Update(
      Override("backbone.windows", proto.windows(), &backbone->windows));
  status.Update(Override("backbone.attention_windows",
                         proto.attention_windows(),
                         &backbone->attention_windows));
  return status;
}

// Sets `to` to the first of these values that exists: `stated` if it is not 0,
// the value from the weights, or `fallback`. Returns INVALID_ARGUMENT if
// `stated` contradicts the weights.
absl::Status Merge(absl::string_view field, int stated,
                   const std::optional<int>& weights, int fallback, int* to) {
  if (stated != 0 && weights.has_value() && stated != *weights) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got ", stated, ", expected ", *weights, ", as ",
                     kWeightsFile, " has it"));
  }
  *to = stated != 0 ? stated : weights.value_or(fallback);
  return absl::OkStatus();
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
    const google::protobuf::RepeatedField<float>& ratios,
    const weights::WeightShapes& shapes, model::DetectorConfig* config) {
  config->anchor_ratios.assign(ratios.begin(), ratios.end());
  const int count = ratios.size();
  if (shapes.anchor_ratios.value_or(count) == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("detector.anchor_ratios: got ", count, " values, expected ",
                   *shapes.anchor_ratios, ", as ", kWeightsFile, " has it"));
}

// Checks that a detector without masks has no mask settings.
absl::Status CheckMaskParts(const v1::Detector& stated, bool masks) {
  const bool has_size = stated.mask_roi_size() != 0;
  if (masks || (!has_size && !stated.has_mask_threshold())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("detector.", has_size ? "mask_roi_size" : "mask_threshold",
                   ": got one, expected none without masks"));
}

absl::Status OverrideDetector(const v1::Detector& stated,
                              const weights::WeightShapes& shapes,
                              model::DetectorConfig* config) {
  const v1::Detector proto = WithDefaults(stated);
  absl::Status status = SetArchitecture(stated.architecture(), shapes, config);
  status.Update(CheckMaskParts(stated, config->masks));
  status.Update(SetBoxStds(proto.box_stds(), config));
  status.Update(SetAnchorRatios(proto.anchor_ratios(), shapes, config));
  status.Update(Merge("detector.channels", stated.channels(), shapes.channels,
                      proto.channels(), &config->channels));
  status.Update(Merge("detector.fc_width", stated.fc_width(), shapes.fc_width,
                      proto.fc_width(), &config->fc_width));
  status.Update(Merge("detector.box_roi_size", stated.box_roi_size(),
                      shapes.box_roi_size, proto.box_roi_size(),
                      &config->box_roi_size));
  config->mask_roi_size = proto.mask_roi_size();
  config->anchor_scale = proto.anchor_scale();
  config->rpn_candidates = proto.rpn_candidates();
  config->rpn_iou_threshold = proto.rpn_iou_threshold();
  config->proposals = proto.proposals();
  config->finest_scale = proto.finest_scale();
  config->score_threshold = proto.score_threshold();
  config->nms_iou_threshold = proto.nms_iou_threshold();
  config->max_detections = proto.max_detections();
  config->mask_threshold = proto.mask_threshold();
  return status;
}

absl::Status OverrideInput(const v1::Input& stated,
                           model::ModelConfig* config) {
  const v1::Input proto = WithDefaults(stated);
  const bool dense = config->task != model::VisionTask::kClassification;
  if (!dense && (proto.short_side() != 0 || proto.long_side() != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input.short_side and long_side: got ", proto.short_side(), " and ",
        proto.long_side(), ", expected neither for CLASSIFICATION"));
  }
  if (dense && proto.crop_pct() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("input.crop_pct: got ", proto.crop_pct(),
                     ", expected none for KEEP_RATIO"));
  }
  Set(proto.short_side(), &config->short_side);
  Set(proto.long_side(), &config->long_side);
  if (dense) config->image_size = config->Padded(config->short_side);
  Set(proto.size(), &config->image_size);
  Set(proto.crop_pct(), &config->crop_pct);
  Translate(proto.resize(),
            {{v1::Input::CENTER_CROP, model::Resize::kCenterCrop},
             {v1::Input::STRETCH, model::Resize::kStretch},
             {v1::Input::KEEP_RATIO, model::Resize::kKeepRatio}},
            &config->resize);
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
               config->num_classes, &config->num_classes);
}

// Checks that `proto` contains the classifier, detector or segmenter settings
// only if they belong to `task`.
absl::Status CheckParts(const v1::ModelConfig& proto, model::VisionTask task) {
  const auto refuse = [&](absl::string_view field) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": got one, expected none for ",
                     v1::ModelConfig::Task_Name(proto.task())));
  };
  if (proto.has_classifier() && task != model::VisionTask::kClassification) {
    return refuse("classifier");
  }
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

model::Precision ToPrecision(v1::Precision precision) {
  switch (precision) {
    case v1::BF16:
      return model::Precision::kBFloat16;
    case v1::FP16:
      return model::Precision::kFloat16;
    case v1::INT8:
      return model::Precision::kInt8;
    default:
      return model::Precision::kFloat32;
  }
}

absl::StatusOr<model::ModelConfig> ToModelConfig(
    const v1::ModelConfig& stated, int classes,
    const weights::WeightShapes& shapes) {
  absl::Status status = server::CheckRanges(stated);
  if (!status.ok()) return status;
  const v1::ModelConfig proto = WithDefaults(stated);
  const model::VisionTask task = ToTask(proto.task());
  absl::StatusOr<model::ModelConfig> config =
      model::VariantConfig(proto.backbone().variant(), task);
  if (!config.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("backbone.variant: ", config.status().message()));
  }
  status.Update(CheckParts(proto, task));
  status.Update(OverrideBackbone(proto.backbone(), &config->backbone));
  status.Update(OverrideInput(proto.input(), &*config));
  status.Update(
      OverrideClasses(proto.num_classes(), classes, shapes, &*config));
  config->classifier = {proto.classifier().channels(),
                        proto.classifier().features()};
  if (task == model::VisionTask::kDetection) {
    status.Update(
        OverrideDetector(proto.detector(), shapes, &config->detector));
  }
  if (task == model::VisionTask::kSegmentation) {
    const int stated_channels = proto.segmenter().channels();
    status.Update(Merge("segmenter.channels", stated_channels,
                        shapes.segmentation_channels,
                        WithDefaults(proto.segmenter()).channels(),
                        &config->segmentation_channels));
  }
  config->precision = ToPrecision(proto.precision());
  status.Update(model::Validate(*config));
  if (!status.ok()) return status;
  return config;
}

batching::BatchOptions ToBatchOptions(const v1::Batching& stated,
                                      model::VisionTask task, bool on_gpus) {
  const v1::Batching proto = WithDefaults(stated);
  batching::BatchOptions options;
  options.max_batch_size = task != model::VisionTask::kClassification ? 4
                           : on_gpus                                  ? 128
                                                                      : 32;
  Set(proto.max_batch_size(), &options.max_batch_size);
  options.max_queue_delay = base::FromProto(proto.max_queue_delay());
  options.max_queue_items = proto.max_queue_items();
  options.max_queue_bytes = proto.max_queue_bytes();
  Translate(proto.mode(),
            {{v1::LATENCY, batching::BatchMode::kLatency},
             {v1::THROUGHPUT, batching::BatchMode::kThroughput}},
            &options.mode);
  return options;
}

}  // namespace sfmamba::repository
