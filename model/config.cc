#include "model/config.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace sfmamba::model {
namespace {

// A row of the table of hybrid variants (SF-Mamba and MambaVision). `name` is
// the variant's name without "sf_mamba_" or "mamba_vision_".
struct Row {
  const char* name;
  int dim, in_dim;
  std::array<int, 4> depths, num_heads;
  std::array<int, 2> windows;
  bool layer_scale;
  int image_size;
  double crop_pct;
  Resize resize;
};

constexpr Row kRows[] = {
    {"t",
     80,
     32,
     {1, 3, 8, 4},
     {2, 4, 8, 16},
     {14, 7},
     false,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"t2",
     80,
     32,
     {1, 3, 11, 4},
     {2, 4, 8, 16},
     {14, 7},
     false,  //
     224,
     0.98,
     Resize::kCenterCrop},
    {"s",
     96,
     64,
     {3, 3, 7, 5},
     {2, 4, 8, 16},
     {14, 7},
     false,  //
     224,
     0.93,
     Resize::kCenterCrop},
    {"b",
     128,
     64,
     {3, 3, 10, 5},
     {2, 4, 8, 16},
     {14, 7},
     true,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"b_21k",
     128,
     64,
     {3, 3, 10, 5},
     {2, 4, 8, 16},
     {14, 7},
     true,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"l",
     196,
     64,
     {3, 3, 10, 5},
     {4, 8, 16, 32},
     {14, 7},
     true,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"l_21k",
     196,
     64,
     {3, 3, 10, 5},
     {4, 8, 16, 32},
     {14, 7},
     true,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"l2",
     196,
     64,
     {3, 3, 12, 5},
     {4, 8, 16, 32},
     {14, 7},
     true,  //
     224,
     1.0,
     Resize::kCenterCrop},
    {"l2_512_21k",
     196,
     64,
     {3, 3, 12, 5},
     {4, 8, 16, 32},
     {32, 16},
     true,  //
     512,
     0.93,
     Resize::kStretch},
    {"l3_256_21k",
     256,
     64,
     {3, 3, 20, 10},
     {4, 8, 16, 32},
     {16, 8},
     true,  //
     256,
     1.0,
     Resize::kCenterCrop},
    {"l3_512_21k",
     256,
     64,
     {3, 3, 20, 10},
     {4, 8, 16, 32},
     {32, 16},
     true,  //
     512,
     0.93,
     Resize::kStretch},
};

constexpr char kSfMamba[] = "sf_mamba_";
constexpr char kMambaVision[] = "mamba_vision_";
constexpr char kCustom[] = "custom";

struct VimRow {
  const char* name;
  int dim;
  bool backward;
  Tokens tokens;
};

constexpr VimRow kVimRows[] = {
    {"vim_t", 192, true, Tokens::kNone},
    {"vim_s", 384, true, Tokens::kNone},
    {"vim_s_uni", 400, false, Tokens::kNone},
    {"vim_s_uni_swap", 400, false, Tokens::kData},
};

// A row of the table of MambaOut variants. In a block with C channels, the
// hidden layer has `expansion` * C channels, rounded down. The block convolves
// `conv` * C of these channels.
struct MambaOutRow {
  const char* name;
  std::array<int, 4> widths, depths;
  double expansion, conv;
  Nonlinearity gate;
  bool rw;
  int image_size;
  double crop_pct;
};

constexpr std::array kWidths48 = {48, 96, 192, 288};
constexpr std::array kWidths96 = {96, 192, 384, 576};
constexpr std::array kWidths128 = {128, 256, 512, 768};
constexpr auto kGelu = Nonlinearity::kGelu;
constexpr auto kSilu = Nonlinearity::kSilu;

// The names and values are taken from timm.
// clang-format off
constexpr MambaOutRow kMambaOutRows[] = {
    {"mambaout_femto", kWidths48, {3, 3, 9, 3}, 8.0 / 3, 1, kGelu, false,
     224, 1},
    {"mambaout_kobe", kWidths48, {3, 3, 15, 3}, 8.0 / 3, 1, kGelu, false,
     224, 1},
    {"mambaout_tiny", kWidths96, {3, 3, 9, 3}, 8.0 / 3, 1, kGelu, false,
     224, 1},
    {"mambaout_small", kWidths96, {3, 4, 27, 3}, 8.0 / 3, 1, kGelu, false,
     224, 1},
    {"mambaout_base", kWidths128, {3, 4, 27, 3}, 8.0 / 3, 1, kGelu, false,
     224, 1},
    {"mambaout_small_rw", kWidths96, {3, 4, 27, 3}, 8.0 / 3, 1, kGelu, true,
     224, 1},
    {"mambaout_base_short_rw", kWidths128, {3, 3, 25, 3}, 3, 1.25, kGelu, true,
     224, 0.95},
    {"mambaout_base_tall_rw", kWidths128, {3, 4, 30, 3}, 2.5, 1.25, kGelu, true,
     224, 0.95},
    {"mambaout_base_wide_rw", kWidths128, {3, 4, 27, 3}, 3, 1.5, kSilu, true,
     224, 0.95},
    {"mambaout_base_plus_rw", kWidths128, {3, 4, 30, 3}, 3, 1.5, kSilu, true,
     224, 1},
    {"test_mambaout", {16, 32, 48, 64}, {1, 1, 3, 1}, 3, 1, kSilu, true,
     160, 1},
};
// clang-format on

struct EfficientVimRow {
  const char* name;
  std::array<int, 3> widths, depths, states;
  int image_size;
};

// `name` is the variant's name without "_dist", the suffix of its distilled
// form. The names and values are taken from timm.
constexpr EfficientVimRow kEfficientVimRows[] = {
    {"efficientvim_m1", {128, 192, 320}, {2, 2, 2}, {49, 25, 9}, 224},
    {"efficientvim_m2", {128, 256, 512}, {2, 2, 2}, {49, 25, 9}, 224},
    {"efficientvim_m3", {224, 320, 512}, {2, 2, 2}, {49, 25, 9}, 224},
    {"efficientvim_m4", {224, 320, 512}, {3, 4, 2}, {64, 32, 16}, 256},
};
constexpr char kDistilled[] = "_dist";

struct VMambaRow {
  const char* name;
  int dim, ssm_ratio;
  std::array<int, 4> depths;
};

constexpr VMambaRow kVMambaRows[] = {
    {"vmamba_t_s1l8", 96, 1, {2, 2, 8, 2}},
    {"vmamba_t_s2l5", 96, 2, {2, 2, 5, 2}},
    {"vmamba_s_s2l15", 96, 2, {2, 2, 15, 2}},
    {"vmamba_s_s1l20", 96, 1, {2, 2, 20, 2}},
    {"vmamba_b_s2l15", 128, 2, {2, 2, 15, 2}},
    {"vmamba_b_s1l20", 128, 1, {2, 2, 20, 2}},
};

ModelConfig FromRow(const Row& row, Tokens tokens) {
  ModelConfig config;
  config.backbone.dim = row.dim;
  config.backbone.in_dim = row.in_dim;
  config.backbone.depths = row.depths;
  config.backbone.num_heads = row.num_heads;
  config.backbone.windows = row.windows;
  config.backbone.layer_scale = row.layer_scale;
  config.backbone.tokens = tokens;
  config.image_size = row.image_size;
  config.crop_pct = row.crop_pct;
  config.resize = row.resize;
  return config;
}

ModelConfig FromRow(const VimRow& row) {
  ModelConfig config;
  config.backbone.architecture = Architecture::kVim;
  config.backbone.vim_dim = row.dim;
  config.backbone.vim_backward = row.backward;
  config.backbone.tokens = row.tokens;
  config.crop_pct = 0.875;  // Vim resizes to 256 pixels and crops to 224.
  return config;
}

ModelConfig FromRow(const MambaOutRow& row) {
  ModelConfig config;
  config.backbone.architecture = Architecture::kMambaOut;
  config.backbone.tokens = Tokens::kNone;
  config.backbone.depths = row.depths;
  MambaOutConfig& mamba_out = config.backbone.mamba_out;
  mamba_out.widths = row.widths;
  for (int stage = 0; stage < 4; ++stage) {
    mamba_out.hidden[stage] =
        static_cast<int>(row.expansion * row.widths[stage]);
    mamba_out.conv[stage] = static_cast<int>(row.conv * row.widths[stage]);
  }
  mamba_out.gate = row.gate;
  mamba_out.rw = row.rw;
  config.image_size = row.image_size;
  config.crop_pct = row.crop_pct;
  return config;
}

ModelConfig FromRow(const EfficientVimRow& row, bool distilled) {
  ModelConfig config;
  config.backbone.architecture = Architecture::kEfficientVim;
  config.backbone.tokens = Tokens::kNone;
  config.backbone.efficient_vim = {row.widths, row.depths, row.states,
                                   distilled};
  config.image_size = row.image_size;
  config.crop_pct = 0.875;
  return config;
}

ModelConfig FromRow(const VMambaRow& row) {
  ModelConfig config;
  config.backbone.architecture = Architecture::kVMamba;
  config.backbone.tokens = Tokens::kNone;
  config.backbone.dim = row.dim;
  config.backbone.depths = row.depths;
  config.backbone.ssm_ratio = row.ssm_ratio;
  config.crop_pct = 0.875;
  return config;
}

absl::StatusOr<ModelConfig> FindRow(absl::string_view variant) {
  if (variant == kCustom) return ModelConfig();
  for (const VimRow& row : kVimRows) {
    if (variant == row.name) return FromRow(row);
  }
  for (const MambaOutRow& row : kMambaOutRows) {
    if (variant == row.name) return FromRow(row);
  }
  for (const VMambaRow& row : kVMambaRows) {
    if (variant == row.name) return FromRow(row);
  }
  absl::string_view name = variant;
  const bool distilled = absl::ConsumeSuffix(&name, kDistilled);
  for (const EfficientVimRow& row : kEfficientVimRows) {
    if (name == row.name) return FromRow(row, distilled);
  }
  name = variant;
  const bool sf_mamba = absl::ConsumePrefix(&name, kSfMamba);
  if (sf_mamba || absl::ConsumePrefix(&name, kMambaVision)) {
    for (const Row& row : kRows) {
      if (name == row.name) {
        return FromRow(row, sf_mamba ? Tokens::kData : Tokens::kNone);
      }
    }
  }
  return absl::NotFoundError(absl::StrCat("variant \"", variant,
                                          "\": expected one of ",
                                          absl::StrJoin(VariantNames(), ", ")));
}

// The functions ForDetection() and ForSegmentation() set the paper's values for
// COCO (detection) and ADE20K (segmentation). The windows are as large as the
// maps of the largest inputs in evaluation or training. Source:
// docs/network.md, "Preprocessing" and "Layers".
void ForDetection(bool sf_mamba, ModelConfig* config) {
  config->task = VisionTask::kDetection;
  config->num_classes = 80;
  config->short_side = 800;
  config->long_side = 1333;
  config->pad_multiple = 32;
  config->backbone.windows =
      sf_mamba ? std::array{84, 42} : std::array{112, 56};
}

void ForSegmentation(absl::string_view variant, ModelConfig* config) {
  const bool largest = absl::StrContains(variant, "_l3_");
  config->task = VisionTask::kSegmentation;
  config->num_classes = 150;
  config->short_side = largest ? 640 : 512;
  config->long_side = largest ? 2560 : 2048;
  config->pad_multiple = 1;
  config->backbone.windows = {64, 32};
  if (variant == "mamba_vision_s") config->backbone.windows = {160, 56};
}

}  // namespace

int BackboneConfig::first_stage() const {
  switch (stem) {
    case Stem::kEfficientNetLite0:
      return 2;
    case Stem::kEfficientNetLite0Stride32:
      return 3;
    case Stem::kConvolutions:
      break;
  }
  return 0;
}

int BackboneConfig::width(int stage) const {
  if (architecture == Architecture::kMambaOut) return mamba_out.widths[stage];
  // The channels of EfficientNet-Lite0's maps at strides 4, 8 and 16.
  constexpr int kLite0Widths[] = {24, 40, 112};
  return stage < first_stage() ? kLite0Widths[stage] : dim << stage;
}

int BackboneConfig::mamba_blocks(int stage) const {
  if (!mamba || stage < first_stage()) return 0;
  // Half of the blocks are Mamba blocks, rounded up if the depth is odd.
  return attention ? (depths[stage] + 1) / 2 : depths[stage];
}

int BackboneConfig::feature_width() const {
  if (architecture == Architecture::kEfficientVim) {
    return efficient_vim.features();
  }
  return architecture == Architecture::kVim ? vim_dim : width(3);
}

int ModelConfig::embedding_width() const {
  constexpr int kMambaOutRatio = 4;
  if (backbone.architecture == Architecture::kMambaOut) {
    return kMambaOutRatio * backbone.feature_width();
  }
  return classifier.features > 0 ? classifier.features
                                 : backbone.feature_width();
}

int ModelConfig::resize_size() const {
  // Published preprocessing rounds down: 224 / 0.93 = 240.9 becomes 240.
  return static_cast<int>(std::floor(image_size / crop_pct));
}

absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant) {
  absl::StatusOr<ModelConfig> config = FindRow(variant);
  if (config.ok()) config->variant = std::string(variant);
  return config;
}

absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant,
                                          VisionTask task) {
  absl::StatusOr<ModelConfig> config = VariantConfig(variant);
  if (!config.ok() || task == VisionTask::kClassification) return config;
  if (config->backbone.architecture != Architecture::kHybrid &&
      config->backbone.architecture != Architecture::kVMamba) {
    return absl::UnimplementedError(
        absl::StrCat("variant \"", variant,
                     "\": expected task classification, or a variant of "
                     "SF-Mamba, MambaVision or VMamba"));
  }
  if (task == VisionTask::kDetection) {
    ForDetection(config->backbone.tokens != Tokens::kNone, &*config);
  } else {
    ForSegmentation(variant, &*config);
  }
  config->backbone.output_norms = true;
  config->resize = Resize::kKeepRatio;
  config->crop_pct = 1;
  // A dense model accepts pictures of any size. Layers choose their algorithms
  // for inputs whose sides are image_size.
  config->image_size = config->Padded(config->short_side);
  return config;
}

std::vector<std::string> VariantNames() {
  std::vector<std::string> names;
  for (const char* prefix : {kSfMamba, kMambaVision}) {
    for (const Row& row : kRows)
      names.push_back(absl::StrCat(prefix, row.name));
  }
  for (const VimRow& row : kVimRows) names.push_back(row.name);
  for (const MambaOutRow& row : kMambaOutRows) names.push_back(row.name);
  for (const EfficientVimRow& row : kEfficientVimRows) {
    names.push_back(row.name);
    names.push_back(absl::StrCat(row.name, kDistilled));
  }
  for (const VMambaRow& row : kVMambaRows) names.push_back(row.name);
  names.push_back(kCustom);
  return names;
}

}  // namespace sfmamba::model
