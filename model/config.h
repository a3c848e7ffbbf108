#ifndef SFMAMBA_MODEL_CONFIG_H_
#define SFMAMBA_MODEL_CONFIG_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/detector_config.h"

namespace sfmamba::model {

// Where a stage's two auxiliary tokens come from. Source: SF-Mamba, 3.2.
enum class Tokens { kNone, kData, kLearnable };

// When the auxiliary tokens leave the sequence.
enum class Discard { kBeforeAttention, kAfterFirstAttention, kAfterAttention };

// How the Mamba blocks read the sequence; all but kUni are ablations.
enum class ScanMode {
  kUni,
  kSeries,
  kSeriesGap,
  kParallelCat,
  kParallelAdd,
  kParallelAddVim,
};

enum class WindowMode { kFixed, kFull };
// kKeepRatio: as large as short_side and long_side allow; of dense tasks.
enum class Resize { kCenterCrop, kStretch, kKeepRatio };
enum class VisionTask { kClassification, kDetection, kSegmentation };
enum class Precision { kFloat32, kBFloat16, kFloat16 };
enum class Architecture { kHybrid, kVim };
// What comes before stage 3: convolutions of our own, or EfficientNet-Lite0's
// layers down to stride 16 (arXiv 1905.11946), which have weights trained
// elsewhere.
enum class Stem { kConvolutions, kEfficientNetLite0 };

// A backbone of four stages: two of convolutions, two of Mamba blocks followed
// by attention blocks. Plain values; Validate() says whether they fit together.
struct BackboneConfig {
  Architecture architecture = Architecture::kHybrid;
  // With kEfficientNetLite0 `in_dim` and the depths of stages 1 and 2 are
  // ignored; `dim` is 28, so that stage 3 has the layers' 112 channels.
  Stem stem = Stem::kConvolutions;
  int dim = 80;     // Channels of stage 1; each stage doubles them.
  int in_dim = 32;  // Channels after the stem's first convolution.
  std::array<int, 4> depths = {1, 3, 8, 4};      // Blocks a stage.
  std::array<int, 4> num_heads = {2, 4, 8, 16};  // Stages 1 and 2 unused.
  std::array<int, 2> windows = {14, 7};  // Side in tokens, stages 3 and 4.
  WindowMode window_mode = WindowMode::kFixed;
  // Side of the attention's sub-windows in stages 3 and 4; 0: none ("club").
  std::array<int, 2> attention_windows = {0, 0};
  bool layer_scale = false;
  bool attention = true;  // False: every block is a Mamba block.
  bool mamba = true;      // False: every block is an attention block.
  Tokens tokens = Tokens::kData;
  bool swap = true;
  Discard discard = Discard::kAfterFirstAttention;
  ScanMode scan = ScanMode::kUni;
  // Each stage's map passes a LayerNorm of its own on its way to the head
  // ("outnorm0" to "outnorm3"): the dense tasks' pyramid.
  bool output_norms = false;
  // kVim only: width, blocks, and whether the backward direction exists.
  int vim_dim = 384;
  int vim_depth = 24;
  bool vim_backward = true;

  // Channels of stage `stage` (0..3).
  int width(int stage) const;
  // Channels of the last feature map.
  int feature_width() const;
  // Mamba blocks of stage `stage` (2 or 3): blocks 0 .. count-1; the others are
  // attention blocks.
  int mamba_blocks(int stage) const;
};

// Everything a model version needs besides its weights and labels.
struct ModelConfig {
  std::string variant;  // As given, for messages and logs.
  VisionTask task = VisionTask::kClassification;
  BackboneConfig backbone;
  DetectorConfig detector;          // kDetection only.
  int segmentation_channels = 512;  // kSegmentation only: UperNet's width.
  int num_classes = 1000;           // Without the background.

  int image_size = 224;  // Pixels a side of the square input.
  double crop_pct = 1.0;
  Resize resize = Resize::kCenterCrop;
  // kKeepRatio only: pixels that the sides may have after the resize. Inputs
  // are then padded with zeros to a multiple of pad_multiple, after
  // normalisation.
  int short_side = 800, long_side = 1333;
  int pad_multiple = 1;
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};  // RGB, of 0..1.
  std::array<float, 3> std = {0.229f, 0.224f, 0.225f};

  Precision precision = Precision::kFloat32;

  // `side` with its padding.
  int Padded(int side) const {
    return (side + pad_multiple - 1) / pad_multiple * pad_multiple;
  }

  // Pixels the picture is resized to before the crop: floor(size / crop_pct).
  int resize_size() const;
};

// The row of the table of variants called `variant`: "sf_mamba_t", "_t2", "_s",
// "_b", "_b_21k", "_l", "_l_21k", "_l2", "_l2_512_21k", "_l3_256_21k",
// "_l3_512_21k"; "mamba_vision_..." the same without auxiliary tokens; "vim_t",
// "vim_s", "vim_s_uni", "vim_s_uni_swap"; "custom": the defaults above, to be
// changed field by field. NOT_FOUND names the known ones.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant);

// The same for another task: the input sizes, padding, windows and classes that
// the paper's detectors (COCO) and segmenters (ADE20K) have on this backbone.
// UNIMPLEMENTED for Vim.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant,
                                          VisionTask task);

// All names that VariantConfig knows, in the table's order.
std::vector<std::string> VariantNames();

// INVALID_ARGUMENT naming the first field that does not fit (heads that do not
// divide the width, a window that its sub-window does not divide, ...).
absl::Status Validate(const ModelConfig& config);

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_CONFIG_H_
