#include "model/config.h"

#include <cmath>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace sfmamba {
namespace {

// A row of the table of hybrid variants; the name follows "sf_mamba_" or
// "mamba_vision_".
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
  config.crop_pct = 0.875;
  return config;
}

absl::StatusOr<ModelConfig> FindRow(absl::string_view variant) {
  if (variant == kCustom) return ModelConfig();
  for (const VimRow& row : kVimRows) {
    if (variant == row.name) return FromRow(row);
  }
  absl::string_view name = variant;
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

// Got and expected for one field; OK if `fits`.
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
  if (status.ok()) {
    status = CheckRange("resize_size", config.resize_size(), config.image_size,
                        1 << 15);
  }
  for (int i = 0; i < 3 && status.ok(); ++i) {
    status = FirstError({
        Check(std::isfinite(config.mean[i]), absl::StrCat("mean[", i, "]"),
              config.mean[i], "a finite number"),
        Check(std::isfinite(config.std[i]) && config.std[i] > 0,
              absl::StrCat("std[", i, "]"), config.std[i],
              "a finite positive number"),
    });
  }
  return status;
}

// What only stages 3 and 4 have; `stage` is 2 or 3.
absl::Status CheckTokenStage(const BackboneConfig& config, int stage) {
  const int width = config.width(stage);
  const int heads = config.num_heads[stage];
  const int window = config.windows[stage - 2];
  const int sub_window = config.attention_windows[stage - 2];
  const std::string at = absl::StrCat("[", stage - 2, "]");
  absl::Status status = FirstError({
      Check(heads > 0 && width % heads == 0,
            absl::StrCat("num_heads[", stage, "]"), heads,
            absl::StrCat("a divisor of the width ", width)),
      CheckRange("windows" + at, window, 1, 1 << 14),
      CheckRange("attention_windows" + at, sub_window, 0, 1 << 14),
      Check(sub_window == 0 || config.attention, "attention_windows" + at,
            sub_window, "0 without attention"),
  });
  if (!status.ok() || sub_window == 0) return status;
  return Check(config.window_mode == WindowMode::kFull ||  //
                   window % sub_window == 0,
               "attention_windows" + at, sub_window,
               absl::StrCat("a divisor of the window ", window));
}

absl::Status CheckHybrid(const BackboneConfig& config) {
  absl::Status status = FirstError({
      CheckRange("dim", config.dim, 1, 1 << 12),
      CheckRange("in_dim", config.in_dim, 1, 1 << 12),
      Check(config.mamba || config.attention, "attention", "false",
            "true without mamba"),
      Check(config.mamba || config.tokens == Tokens::kNone, "tokens", "some",
            "none without Mamba blocks"),
      Check(config.mamba || config.scan == ScanMode::kUni, "scan",
            "an ablation", "uni without Mamba blocks"),
      Check(config.scan == ScanMode::kUni || config.tokens == Tokens::kNone,
            "tokens", "some", "none with an ablation of the scan"),
  });
  for (int stage = 0; stage < 4 && status.ok(); ++stage) {
    status = CheckRange(absl::StrCat("depths[", stage, "]"),
                        config.depths[stage], 1, 1 << 8);
  }
  for (int stage = 2; stage < 4 && status.ok(); ++stage) {
    status = CheckTokenStage(config, stage);
  }
  return status;
}

absl::Status CheckVim(const ModelConfig& config) {
  const BackboneConfig& backbone = config.backbone;
  return FirstError({
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

}  // namespace

int BackboneConfig::mamba_blocks(int stage) const {
  if (!mamba) return 0;
  return attention ? (depths[stage] + 1) / 2 : depths[stage];
}

int BackboneConfig::feature_width() const {
  return architecture == Architecture::kVim ? vim_dim : width(3);
}

int ModelConfig::resize_size() const {
  return static_cast<int>(std::floor(image_size / crop_pct));
}

absl::StatusOr<ModelConfig> VariantConfig(absl::string_view variant) {
  absl::StatusOr<ModelConfig> config = FindRow(variant);
  if (config.ok()) config->variant = std::string(variant);
  return config;
}

std::vector<std::string> VariantNames() {
  std::vector<std::string> names;
  for (const char* prefix : {kSfMamba, kMambaVision}) {
    for (const Row& row : kRows)
      names.push_back(absl::StrCat(prefix, row.name));
  }
  for (const VimRow& row : kVimRows) names.push_back(row.name);
  names.push_back(kCustom);
  return names;
}

absl::Status Validate(const ModelConfig& config) {
  absl::Status status = CheckImage(config);
  if (status.ok()) {
    status = config.backbone.architecture == Architecture::kVim
                 ? CheckVim(config)
                 : CheckHybrid(config.backbone);
  }
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("model ", config.variant, ": ", status.message()));
}

}  // namespace sfmamba
