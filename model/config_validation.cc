#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/config.h"

namespace sfmamba::model {
namespace {

// Returns OK if `fits`. If not, returns INVALID_ARGUMENT with the field's name,
// its value and the expected value.
template <typename T>
absl::Status Check(bool fits, absl::string_view field, const T& got,
                   absl::string_view expected) {
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", got ", got));
}

absl::Status CheckRange(absl::string_view field, int got, int min, int max) {
  return Check(got >= min && got <= max, field, got,
               absl::StrCat(min, " to ", max));
}

absl::Status CheckPositive(absl::string_view field, float got) {
  return Check(std::isfinite(got) && got > 0, field, got,
               "a finite positive number");
}

absl::Status CheckFraction(absl::string_view field, float got) {
  return Check(got >= 0 && got <= 1, field, got, "0 to 1");
}

absl::Status FirstError(std::initializer_list<absl::Status> checks) {
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const ModelConfig& config) {
  absl::Status status = FirstError({
      CheckRange("num_classes", config.num_classes, 1, 1 << 20),
      CheckRange("image_size", config.image_size, 1, 1 << 14),
      Check(config.crop_pct >= 0.01 && config.crop_pct <= 1, "crop_pct",
            config.crop_pct, "0.01 to 1"),
  });
  // resize_size() divides by crop_pct. Therefore crop_pct must be checked
  // first.
  if (status.ok()) {
    status = CheckRange("resize_size", config.resize_size(), config.image_size,
                        1 << 15);
  }
  for (int i = 0; i < 3 && status.ok(); ++i) {
    status = FirstError({
        Check(std::isfinite(config.mean[i]), absl::StrCat("mean[", i, "]"),
              config.mean[i], "a finite number"),
        CheckPositive(absl::StrCat("std[", i, "]"), config.std[i]),
    });
  }
  return status;
}

absl::Status CheckDepth(const BackboneConfig& config, int stage) {
  return CheckRange(absl::StrCat("depths[", stage, "]"), config.depths[stage],
                    1, 1 << 8);
}

// Checks the fields of a token stage, one of the last two stages. `stage`
// counts from 0, so it is 2 or 3.
absl::Status CheckTokenStage(const BackboneConfig& config, int stage) {
  const int width = config.width(stage);
  const int heads = config.num_heads[stage];
  const int window = config.windows[stage - 2];
  const int sub_window = config.attention_windows[stage - 2];
  const std::string at = absl::StrCat("[", stage - 2, "]");
  absl::Status status = FirstError({
      CheckDepth(config, stage),
      Check(heads > 0 && width % heads == 0,
            absl::StrCat("num_heads[", stage, "]"), heads,
            absl::StrCat("a divisor of the width ", width)),
      CheckRange("windows" + at, window, 1, 1 << 14),
      CheckRange("attention_windows" + at, sub_window, 0, 1 << 14),
      Check(sub_window == 0 || config.attention, "attention_windows" + at,
            sub_window, "0 without attention"),
  });
  if (!status.ok() || sub_window == 0) return status;
  // With kFull, the side of a sub-window need not divide the side of the
  // window, because the map is padded to whole sub-windows.
  return Check(config.window_mode == WindowMode::kFull ||  //
                   window % sub_window == 0,
               "attention_windows" + at, sub_window,
               absl::StrCat("a divisor of the window ", window));
}

// Checks the layers before the token stages. An EfficientNet-Lite0 must end
// with as many channels as the stage after it. kEfficientNetLite0 ends with 112
// channels, and the third stage has 4 * dim. kEfficientNetLite0Stride32 ends
// with 192 channels, and the last stage has 8 * dim.
absl::Status CheckStem(const BackboneConfig& config) {
  if (config.stem == Stem::kEfficientNetLite0) {
    return Check(config.dim == 28, "dim", config.dim,
                 "28 with the stem efficientnet_lite0");
  }
  if (config.stem == Stem::kEfficientNetLite0Stride32) {
    return Check(config.dim == 24, "dim", config.dim,
                 "24 with the stem efficientnet_lite0_stride32");
  }
  return FirstError({
      CheckRange("dim", config.dim, 1, 1 << 12),
      CheckRange("in_dim", config.in_dim, 1, 1 << 12),
      CheckDepth(config, 0),
      CheckDepth(config, 1),
  });
}

absl::Status CheckHybrid(const BackboneConfig& config) {
  const char* tokens = config.tokens == Tokens::kData ? "DATA" : "LEARNABLE";
  absl::Status status = FirstError({
      CheckStem(config),
      Check(config.mamba || config.attention, "attention", "false",
            "true without mamba"),
      Check(config.mamba || config.tokens == Tokens::kNone, "tokens", tokens,
            "NONE without Mamba blocks"),
      Check(config.mamba || config.scan == ScanMode::kUni, "scan", "another",
            "UNI without Mamba blocks"),
      // In a forward scan, a token gets no information from later tokens. The
      // auxiliary tokens bring information from the end of the sequence to its
      // beginning. The paper defines them only for forward scans (kUni).
      Check(config.scan == ScanMode::kUni || config.tokens == Tokens::kNone,
            "tokens", tokens, "NONE with a scan other than UNI"),
  });
  const int first = std::max(2, config.first_stage());
  for (int stage = first; stage < 4 && status.ok(); ++stage) {
    status = CheckTokenStage(config, stage);
  }
  return status;
}

absl::Status CheckVim(const ModelConfig& config) {
  const BackboneConfig& backbone = config.backbone;
  return FirstError({
      Check(backbone.stem == Stem::kConvolutions, "stem", "efficientnet_lite0",
            "none for Vim"),
      Check(config.classifier.features == 0, "classifier.features",
            config.classifier.features, "0 for Vim"),
      CheckRange("vim_dim", backbone.vim_dim, 1, 1 << 14),
      CheckRange("vim_depth", backbone.vim_depth, 1, 1 << 8),
      Check(config.image_size % 16 == 0, "image_size", config.image_size,
            "a multiple of the patch size 16"),
      Check(backbone.tokens != Tokens::kLearnable, "tokens", "learnable",
            "none or data for Vim"),
      Check(!backbone.vim_backward || backbone.tokens == Tokens::kNone,
            "vim_backward", "true", "false with auxiliary tokens"),
      Check(backbone.scan == ScanMode::kUni, "scan", "an ablation",
            "uni for Vim"),
  });
}

absl::Status CheckMambaOut(const ModelConfig& config) {
  const MambaOutConfig& mamba_out = config.backbone.mamba_out;
  absl::Status status =
      Check(config.classifier.features == 0, "classifier.features",
            config.classifier.features, "0 for MambaOut");
  for (int stage = 0; stage < 4 && status.ok(); ++stage) {
    const std::string at = absl::StrCat("[", stage, "]");
    const int hidden = mamba_out.hidden[stage];
    status = FirstError({
        CheckDepth(config.backbone, stage),
        CheckRange("widths" + at, mamba_out.widths[stage], 2, 1 << 14),
        CheckRange("hidden" + at, hidden, 1, 1 << 16),
        CheckRange("conv" + at, mamba_out.conv[stage], 1, hidden),
    });
  }
  return status;
}

absl::Status CheckEfficientVim(const ModelConfig& config) {
  const EfficientVimConfig& own = config.backbone.efficient_vim;
  absl::Status status =
      Check(config.classifier.features == 0, "classifier.features",
            config.classifier.features, "0 for EfficientViM");
  for (int stage = 0; stage < 3 && status.ok(); ++stage) {
    const std::string at = absl::StrCat("[", stage, "]");
    status = FirstError({
        CheckRange("widths" + at, own.widths[stage], 8, 1 << 12),
        Check(own.widths[stage] % 8 == 0, "widths" + at, own.widths[stage],
              "a multiple of 8"),
        CheckRange("depths" + at, own.depths[stage], 1, 1 << 8),
        CheckRange("states" + at, own.states[stage], 1, 1 << 10),
    });
  }
  return status;
}

absl::Status CheckVMamba(const ModelConfig& config) {
  const BackboneConfig& backbone = config.backbone;
  absl::Status status = FirstError({
      Check(config.classifier.features == 0, "classifier.features",
            config.classifier.features, "0 for VMamba"),
      CheckRange("dim", backbone.dim, 2, 1 << 12),
      CheckRange("ssm_ratio", backbone.ssm_ratio, 1, 2),
  });
  for (int stage = 0; stage < 4 && status.ok(); ++stage) {
    status = CheckDepth(backbone, stage);
  }
  return status;
}

absl::Status CheckArchitecture(const ModelConfig& config) {
  switch (config.backbone.architecture) {
    case Architecture::kVim:
      return CheckVim(config);
    case Architecture::kMambaOut:
      return CheckMambaOut(config);
    case Architecture::kEfficientVim:
      return CheckEfficientVim(config);
    case Architecture::kVMamba:
      return CheckVMamba(config);
    case Architecture::kHybrid:
      break;
  }
  return CheckHybrid(config.backbone);
}

absl::Status CheckDetector(const DetectorConfig& config) {
  absl::Status status = FirstError({
      CheckRange("detector.box_stages", config.box_stages, 1, 8),
      CheckRange("detector.box_convs", config.box_convs, 0, 16),
      CheckRange("detector.box_fcs", config.box_fcs, 1, 16),
      CheckRange("detector.mask_convs", config.mask_convs, 0, 16),
      CheckRange("detector.channels", config.channels, 1, 1 << 12),
      CheckRange("detector.fc_width", config.fc_width, 1, 1 << 14),
      CheckPositive("detector.anchor_scale", config.anchor_scale),
      CheckRange("detector.anchor_ratios' count", config.anchor_ratios.size(),
                 1, 16),
      CheckRange("detector.rpn_candidates", config.rpn_candidates, 1, 100000),
      CheckFraction("detector.rpn_iou_threshold", config.rpn_iou_threshold),
      CheckRange("detector.proposals", config.proposals, 1, 10000),
      CheckPositive("detector.finest_scale", config.finest_scale),
      CheckRange("detector.box_roi_size", config.box_roi_size, 1, 64),
      CheckRange("detector.mask_roi_size", config.mask_roi_size, 1, 64),
      CheckRange("detector.box_stds' count", config.box_stds.size(),
                 config.box_stages, config.box_stages),
      CheckFraction("detector.score_threshold", config.score_threshold),
      CheckFraction("detector.nms_iou_threshold", config.nms_iou_threshold),
      CheckRange("detector.max_detections", config.max_detections, 1, 10000),
      CheckFraction("detector.mask_threshold", config.mask_threshold),
  });
  for (const float ratio : config.anchor_ratios) {
    status.Update(CheckPositive("detector.anchor_ratios", ratio));
  }
  for (const std::array<float, 4>& stds : config.box_stds) {
    for (const float std : stds) {
      status.Update(CheckPositive("detector.box_stds", std));
    }
  }
  return status;
}

// Checks that a classifier has both additional layers or neither.
absl::Status CheckClassifier(const ClassifierConfig& config) {
  const int least = config.channels > 0 || config.features > 0 ? 1 : 0;
  return FirstError({
      CheckRange("classifier.channels", config.channels, least, 1 << 12),
      CheckRange("classifier.features", config.features, least, 1 << 14),
  });
}

// Checks that the task, the input's size and the backbone's outputs match.
absl::Status CheckTask(const ModelConfig& config) {
  const bool dense = config.task != VisionTask::kClassification;
  absl::Status status = FirstError({
      Check(dense == config.backbone.output_norms, "output_norms",
            config.backbone.output_norms ? "true" : "false",
            dense ? "true for a dense task" : "false for classification"),
      Check(dense == (config.resize == Resize::kKeepRatio), "resize",
            dense ? "another way" : "KEEP_RATIO",
            dense ? "KEEP_RATIO for a dense task"
                  : "CENTER_CROP or STRETCH for classification"),
      CheckRange("pad_multiple", config.pad_multiple, 1, dense ? 1 << 10 : 1),
  });
  if (!status.ok()) return status;
  if (!dense) return CheckClassifier(config.classifier);
  status = FirstError({
      Check(config.classifier.features == 0, "classifier.features",
            config.classifier.features, "0 for a dense task"),
      Check(config.backbone.architecture == Architecture::kHybrid ||
                config.backbone.architecture == Architecture::kVMamba,
            "architecture", "another", "hybrid or VMamba for a dense task"),
      CheckRange("short_side", config.short_side, 1, 1 << 13),
      CheckRange("long_side", config.long_side, config.short_side, 1 << 13),
      // A class map has 16 bits per pixel.
      CheckRange("num_classes", config.num_classes, 1, (1 << 16) - 1),
  });
  if (!status.ok()) return status;
  if (config.task == VisionTask::kDetection) {
    return CheckDetector(config.detector);
  }
  // A segmenter's picture must not be padded. The logits are resized as if they
  // covered exactly the picture.
  return FirstError({
      CheckRange("pad_multiple", config.pad_multiple, 1, 1),
      CheckRange("segmentation_channels", config.segmentation_channels, 1,
                 1 << 12),
  });
}

}  // namespace

absl::Status Validate(const ModelConfig& config) {
  absl::Status status = CheckImage(config);
  if (status.ok()) status = CheckArchitecture(config);
  if (status.ok()) status = CheckTask(config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("model ", config.variant, ": ", status.message()));
}

}  // namespace sfmamba::model
