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

// How the two auxiliary tokens of a stage are initialised. kNone means that
// there are no auxiliary tokens. With kData, they are the mean of the sequence.
// With kLearnable, they are learned. Source: SF-Mamba (arXiv 2603.16423), 3.2.
enum class Tokens { kNone, kData, kLearnable };

// The point at which a stage removes the auxiliary tokens from its sequences.
enum class Discard { kBeforeAttention, kAfterFirstAttention, kAfterAttention };

// The directions in which the Mamba blocks scan a sequence. All modes except
// kUni exist only to repeat the paper's ablations.
enum class ScanMode {
  kUni,
  kSeries,
  kSeriesGap,
  kParallelCat,
  kParallelAdd,
  kParallelAddVim,
};

enum class WindowMode { kFixed, kFull };
// How a picture is resized to the network's input. kKeepRatio is for detection
// and segmentation. It keeps the picture's aspect ratio and makes the picture
// as large as short_side and long_side allow.
enum class Resize { kCenterCrop, kStretch, kKeepRatio };
enum class VisionTask { kClassification, kDetection, kSegmentation };
enum class Precision { kFloat32, kBFloat16, kFloat16, kInt8 };
enum class Architecture { kHybrid, kVim, kMambaOut, kEfficientVim, kVMamba };
enum class Nonlinearity { kGelu, kSilu };  // kGelu is the erf form.
// The layers before the token stages. kConvolutions means the convolutions of
// the papers. The other two are the layers of EfficientNet-Lite0 (arXiv
// 1905.11946) down to stride 16 or 32, for which pretrained weights exist.
enum class Stem {
  kConvolutions,
  kEfficientNetLite0,
  kEfficientNetLite0Stride32,
};

// The configuration of a MambaOut (arXiv 2405.07992). Each array has one value
// per stage. The depths are in BackboneConfig.
struct MambaOutConfig {
  std::array<int, 4> widths = {};
  std::array<int, 4> hidden = {};           // Channels of a block's gate.
  std::array<int, 4> conv = {};             // Channels that a block convolves.
  Nonlinearity gate = Nonlinearity::kGelu;  // Also the stem's activation.
  // Whether this is a "_rw" variant, timm's form of the network. Its
  // downsampling layers have their norm before the convolution and not after
  // it. Its blocks have a layer scale. The first norm of the stem and the last
  // norm of the classifier are missing.
  bool rw = false;
};

// The configuration of an EfficientViM (arXiv 2411.15241). Each array has one
// value for each of the three stages.
struct EfficientVimConfig {
  std::array<int, 3> widths = {};  // Multiples of 8.
  std::array<int, 3> depths = {};
  std::array<int, 3> states = {};  // Hidden states of an image.
  // Whether there is a second classifier, trained to imitate a teacher model.
  // If so, the model's logits are the mean of both classifiers' logits.
  bool distilled = false;

  // Returns the length of the feature vector that the classifiers read.
  int features() const { return widths[0] + widths[1] + 2 * widths[2]; }
};

// The configuration of a backbone. The default architecture has four stages.
// Two consist of convolutions, and two of Mamba blocks followed by attention
// blocks. Validate() checks that the values are consistent.
struct BackboneConfig {
  Architecture architecture = Architecture::kHybrid;
  // If the stem is an EfficientNet-Lite0, it replaces the stages before
  // first_stage(). The fields of these stages and `in_dim` are then ignored.
  // The stem's last map must have as many channels as the first stage after
  // it. kEfficientNetLite0 ends with 112 channels, and the third stage follows.
  // This stage has 4 * dim channels, so `dim` must be 28.
  // kEfficientNetLite0Stride32 ends with 192 channels, and the last stage
  // follows. This stage has 8 * dim channels, so `dim` must be 24.
  Stem stem = Stem::kConvolutions;
  int dim = 80;     // Channels of the first stage; each stage doubles them.
  int in_dim = 32;  // Channels after the stem's first convolution.
  std::array<int, 4> depths = {1, 3, 8, 4};      // Blocks in each stage.
  std::array<int, 4> num_heads = {2, 4, 8, 16};  // The first two are ignored.
  // The side of the windows in the last two stages, in tokens.
  std::array<int, 2> windows = {14, 7};
  WindowMode window_mode = WindowMode::kFixed;
  // The side, in tokens, of the sub-windows to which attention is limited in
  // the last two stages. The "club" models use this. 0 means that attention is
  // not limited.
  std::array<int, 2> attention_windows = {0, 0};
  bool layer_scale = false;
  bool attention = true;  // If false, every block is a Mamba block.
  bool mamba = true;      // If false, every block is an attention block.
  Tokens tokens = Tokens::kData;
  bool swap = true;
  Discard discard = Discard::kAfterFirstAttention;
  ScanMode scan = ScanMode::kUni;
  // Whether a LayerNorm ("outnorm0" to "outnorm3") is applied to each stage's
  // map before the head. Detection and segmentation need this.
  bool output_norms = false;
  // The next three fields are for kVim only.
  int vim_dim = 384;         // Channels.
  int vim_depth = 24;        // Blocks.
  bool vim_backward = true;  // Whether sequences are also scanned backward.
  // kMambaOut uses only this field and `depths`.
  MambaOutConfig mamba_out;
  // kEfficientVim uses only this field.
  EfficientVimConfig efficient_vim;
  // The number of channels that a block scans, divided by the block's channels.
  // kVMamba uses only this field, `dim`, `depths` and `output_norms`.
  int ssm_ratio = 1;

  // Returns the first stage (0..3) that the stem does not replace.
  int first_stage() const;
  // Returns the channels of stage `stage` (0..3). If the stem replaces the
  // stage, returns the channels of the stem's map with the same stride.
  int width(int stage) const;
  // Returns the channels of the last feature map.
  int feature_width() const;
  // Returns the number of Mamba blocks in stage `stage` (2 or 3). The stage
  // begins with these blocks. All other blocks of the stage are attention
  // blocks.
  int mamba_blocks(int stage) const;
};

// Additional layers between a classifier's last map and its classes. They are a
// 1x1 convolution to `channels` channels, a 1x1 convolution to `features`
// channels, a BatchNorm and ReLU6, in this order. If both fields are 0, there
// are no such layers.
struct ClassifierConfig {
  int channels = 0;
  int features = 0;
};

// Everything a model version needs besides its weights and labels.
struct ModelConfig {
  std::string variant;  // The variant's name, for messages and logs.
  VisionTask task = VisionTask::kClassification;
  BackboneConfig backbone;
  ClassifierConfig classifier;      // For hybrid classifiers only.
  DetectorConfig detector;          // For kDetection only.
  int segmentation_channels = 512;  // UperNet's width.
  int num_classes = 1000;           // The background does not count.

  int image_size = 224;  // The side of the square input in pixels.
  double crop_pct = 1.0;
  Resize resize = Resize::kCenterCrop;
  // The next three fields are for kKeepRatio only. short_side and long_side are
  // the maximum of the shorter and of the longer side after the resize, in
  // pixels. After normalisation, the sides of inputs are padded with zeros to
  // multiples of pad_multiple pixels.
  int short_side = 800, long_side = 1333;
  int pad_multiple = 1;
  // The mean and the standard deviation of R, G and B on a scale from 0 to 1.
  // Inputs are normalised with them.
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};
  std::array<float, 3> std = {0.229f, 0.224f, 0.225f};

  Precision precision = Precision::kFloat32;

  // Returns `side` rounded up to a multiple of pad_multiple.
  int Padded(int side) const {
    return (side + pad_multiple - 1) / pad_multiple * pad_multiple;
  }

  // Returns the size of a classifier's embedding. This is the vector that the
  // classifier's last layer reads.
  int embedding_width() const;

  // Returns the side, in pixels, to which a picture is resized before the crop.
  // This is floor(image_size / crop_pct).
  int resize_size() const;
};

// Returns the configuration of the variant with this name. For an unknown name,
// returns NOT_FOUND with a list of the known variants. The names are:
//
//   sf_mamba_X, where X is t, t2, s, b, b_21k, l, l_21k, l2, l2_512_21k,
//     l3_256_21k or l3_512_21k.
//   mamba_vision_X, with the same X, without auxiliary tokens.
//   vim_t, vim_s, vim_s_uni and vim_s_uni_swap.
//   The names of MambaOut and EfficientViM in timm, such as mambaout_femto,
//     efficientvim_m1 and efficientvim_m1_dist.
//   vmamba_t_s1l8, vmamba_t_s2l5, vmamba_s_s2l15, vmamba_s_s1l20,
//     vmamba_b_s2l15 and vmamba_b_s1l20.
//   custom, which has the default values of this file.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant);

// Returns the configuration of a variant for a task. For detection (COCO) and
// segmentation (ADE20K), the configuration has the paper's input sizes,
// padding, windows and number of classes. For these two tasks, returns
// UNIMPLEMENTED if the variant is a Vim, a MambaOut or an EfficientViM.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant,
                                          VisionTask task);

// Returns all names that VariantConfig() knows, in the order of its tables.
std::vector<std::string> VariantNames();

// Returns INVALID_ARGUMENT with the name of the first invalid field if the
// values do not fit each other. For example, the number of heads must divide
// the width, and a sub-window's side must divide its window's side.
absl::Status Validate(const ModelConfig& config);

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_CONFIG_H_
