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

// How a stage's two auxiliary tokens are initialised: not at all (there are
// none), with the mean of the sequence, or with learned values.
// Source: SF-Mamba (arXiv 2603.16423), 3.2.
enum class Tokens { kNone, kData, kLearnable };

// When the auxiliary tokens are removed from the sequence.
enum class Discard { kBeforeAttention, kAfterFirstAttention, kAfterAttention };

// The directions in which the Mamba blocks scan a sequence. All but kUni are
// ablations.
enum class ScanMode {
  kUni,
  kSeries,
  kSeriesGap,
  kParallelCat,
  kParallelAdd,
  kParallelAddVim,
};

enum class WindowMode { kFixed, kFull };
// How a picture is resized to the network's input. kKeepRatio, for the dense
// tasks, makes it as large as short_side and long_side allow.
enum class Resize { kCenterCrop, kStretch, kKeepRatio };
enum class VisionTask { kClassification, kDetection, kSegmentation };
enum class Precision { kFloat32, kBFloat16, kFloat16, kInt8 };
enum class Architecture { kHybrid, kVim, kMambaOut, kEfficientVim, kVMamba };
enum class Nonlinearity { kGelu, kSilu };  // GELU in its erf form.
// The layers before the token stages: the papers' convolutions, or the layers
// of EfficientNet-Lite0 (arXiv 1905.11946), for which pretrained weights exist,
// down to stride 16 or 32.
enum class Stem {
  kConvolutions,
  kEfficientNetLite0,
  kEfficientNetLite0Stride32,
};

// What MambaOut (arXiv 2405.07992) has besides its depths, by stage.
struct MambaOutConfig {
  std::array<int, 4> widths = {};
  std::array<int, 4> hidden = {};           // Channels of a block's gate.
  std::array<int, 4> conv = {};             // Channels that a block convolves.
  Nonlinearity gate = Nonlinearity::kGelu;  // The stem's, too.
  // Whether it is timm's form of the network, the variants "_rw": the
  // downsampling layers are normalised before and not behind their convolution,
  // blocks have a layer scale, and two norms are missing.
  bool rw = false;
};

// EfficientViM (arXiv 2411.15241), by stage: it has three.
struct EfficientVimConfig {
  std::array<int, 3> widths = {};  // Multiples of 8.
  std::array<int, 3> depths = {};
  std::array<int, 3> states = {};  // Hidden states of an image.
  // Whether there is a second classifier, which learned from a teacher. The
  // logits are the mean of both.
  bool distilled = false;

  // Returns the number of values that the classifiers read.
  int features() const { return widths[0] + widths[1] + 2 * widths[2]; }
};

// A backbone of four stages: two of convolutions, then two of Mamba blocks
// followed by attention blocks. Validate() checks that the values are
// consistent.
struct BackboneConfig {
  Architecture architecture = Architecture::kHybrid;
  // An EfficientNet-Lite0 replaces the stages before first_stage(): what is
  // said of them and `in_dim` are ignored. `dim` must be such that the first
  // stage has the stem's channels: 28 for 112 of them in stage 3, 24 for 192 in
  // stage 4.
  Stem stem = Stem::kConvolutions;
  int dim = 80;     // Channels of stage 1; each stage doubles them.
  int in_dim = 32;  // Channels after the stem's first convolution.
  std::array<int, 4> depths = {1, 3, 8, 4};      // Blocks in each stage.
  std::array<int, 4> num_heads = {2, 4, 8, 16};  // Ignored in stages 1 and 2.
  // The side of the windows in stages 3 and 4, in tokens.
  std::array<int, 2> windows = {14, 7};
  WindowMode window_mode = WindowMode::kFixed;
  // The side of the attention's sub-windows in stages 3 and 4 (the "club"
  // models), in tokens; 0 means none.
  std::array<int, 2> attention_windows = {0, 0};
  bool layer_scale = false;
  bool attention = true;  // If false, every block is a Mamba block.
  bool mamba = true;      // If false, every block is an attention block.
  Tokens tokens = Tokens::kData;
  bool swap = true;
  Discard discard = Discard::kAfterFirstAttention;
  ScanMode scan = ScanMode::kUni;
  // Whether a LayerNorm ("outnorm0" to "outnorm3") is applied to each stage's
  // map before the head, as in the dense tasks.
  bool output_norms = false;
  // The next three fields are for kVim only.
  int vim_dim = 384;         // Channels.
  int vim_depth = 24;        // Blocks.
  bool vim_backward = true;  // Whether sequences are also scanned backward.
  // For kMambaOut only, which ignores all other fields but `depths`.
  MambaOutConfig mamba_out;
  // For kEfficientVim only, which ignores all other fields.
  EfficientVimConfig efficient_vim;
  // For kVMamba only, which ignores all other fields but `dim`, `depths` and
  // `output_norms`: the channels that a block scans, in multiples of its own.
  int ssm_ratio = 1;

  // Returns the first stage (0..3) that the stem does not replace.
  int first_stage() const;
  // Returns the channels of stage `stage` (0..3), or of the stem's map with its
  // stride.
  int width(int stage) const;
  // Returns the channels of the last feature map.
  int feature_width() const;
  // Returns the number of Mamba blocks in stage `stage` (2 or 3). They come
  // first; the stage's other blocks are attention blocks.
  int mamba_blocks(int stage) const;
};

// The layers between a classifier's last map and its classes: a 1x1 convolution
// to `channels`, then one to `features`, with a BatchNorm and ReLU6. Both are 0
// if there are none.
struct ClassifierConfig {
  int channels = 0;
  int features = 0;
};

// Everything a model version needs besides its weights and labels.
struct ModelConfig {
  std::string variant;  // The variant's name, for messages and logs.
  VisionTask task = VisionTask::kClassification;
  BackboneConfig backbone;
  ClassifierConfig classifier;      // kClassification only; not of Vim.
  DetectorConfig detector;          // kDetection only.
  int segmentation_channels = 512;  // UperNet's width; kSegmentation only.
  int num_classes = 1000;           // Without the background.

  int image_size = 224;  // Pixels a side of the square input.
  double crop_pct = 1.0;
  Resize resize = Resize::kCenterCrop;
  // kKeepRatio only: the limits of the sides after the resize, in pixels. After
  // normalisation, inputs are padded with zeros to multiples of pad_multiple.
  int short_side = 800, long_side = 1333;
  int pad_multiple = 1;
  // The mean and standard deviation of R, G and B, scaled to 0..1.
  std::array<float, 3> mean = {0.485f, 0.456f, 0.406f};
  std::array<float, 3> std = {0.229f, 0.224f, 0.225f};

  Precision precision = Precision::kFloat32;

  // Returns `side` rounded up to a multiple of pad_multiple.
  int Padded(int side) const {
    return (side + pad_multiple - 1) / pad_multiple * pad_multiple;
  }

  // Returns the size of a classifier's embedding, which its last layer reads.
  int embedding_width() const;

  // Returns the side, in pixels, that a picture is resized to before the crop:
  // floor(image_size / crop_pct).
  int resize_size() const;
};

// Returns the configuration of a variant: "sf_mamba_t", "_t2", "_s", "_b",
// "_b_21k", "_l", "_l_21k", "_l2", "_l2_512_21k", "_l3_256_21k" or
// "_l3_512_21k"; the same names with "mamba_vision_", without auxiliary tokens;
// "vim_t", "vim_s", "vim_s_uni" or "vim_s_uni_swap"; timm's names of MambaOut
// ("mambaout_femto", ...) and of EfficientViM ("efficientvim_m1",
// "efficientvim_m1_dist", ...); "vmamba_t_s1l8", "vmamba_t_s2l5",
// "vmamba_s_s2l15", "vmamba_s_s1l20", "vmamba_b_s2l15" or "vmamba_b_s1l20"; or
// "custom", which is the defaults above.
// NOT_FOUND, naming the known variants, for any other name.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant);

// Returns a variant for a task: for detection (COCO) and segmentation (ADE20K),
// with the input sizes, padding, windows and classes of the paper.
// UNIMPLEMENTED for the dense tasks with Vim, MambaOut and EfficientViM.
absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant,
                                          VisionTask task);

// Returns all names that VariantConfig knows, in the table's order.
std::vector<std::string> VariantNames();

// INVALID_ARGUMENT that names the first invalid field (heads that do not divide
// the width, a sub-window that does not divide its window, ...).
absl::Status Validate(const ModelConfig& config);

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_CONFIG_H_
