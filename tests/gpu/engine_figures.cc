#include "tests/gpu/engine_figures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/json.h"

namespace sfmamba {
namespace {

// The paper's batch size of 128 comes first.
constexpr int kBatches[] = {128, 256, 32, 8, 1, 512, 64, 16, 4, 2};
constexpr int kSides[] = {224, 448, 896, 1792, 3584};
// At smaller sides, maps have no 32 x 32 windows.
constexpr int kFirstClubSide = 896;
constexpr int kClubWindow = 32;
constexpr int kTinyBatch = 2, kTinySide = 64;

constexpr const char* kGroups[] = {"batch", "resolution", "fold"};
constexpr std::pair<model::Precision, const char*> kPrecisions[] = {
    {model::Precision::kBFloat16, "bf16"},
    {model::Precision::kFloat16, "fp16"},
    {model::Precision::kFloat32, "fp32"}};

const char* NameOf(model::Precision precision) {
  for (const auto& [value, name] : kPrecisions) {
    if (value == precision) return name;
  }
  return "";
}

const char* Bool(bool value) { return value ? "true" : "false"; }

template <typename T, typename U>
bool Allows(const std::vector<T>& wanted, const U& value) {
  return wanted.empty() ||
         std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool Allows(const EngineFilter& filter, const EngineCase& engine) {
  return Allows(filter.groups, kGroups[engine.group]) &&
         Allows(filter.variants, engine.variant) &&
         Allows(filter.precisions, NameOf(engine.precision)) &&
         Allows(filter.batches, engine.batch);
}

void AddBatches(std::vector<EngineCase>* cases) {
  // Variants that are compared with each other are neighbours.
  for (const char* variant :
       {"sf_mamba_t", "mamba_vision_t", "sf_mamba_s", "mamba_vision_s",
        "sf_mamba_b", "mamba_vision_b"}) {
    for (const int batch : kBatches) {
      cases->push_back(
          {EngineCase::kBatch, variant, model::Precision::kBFloat16, batch});
    }
  }
  for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
    for (const int batch : kBatches) {
      cases->push_back(
          {EngineCase::kBatch, variant, model::Precision::kFloat16, batch});
    }
  }
  cases->push_back(
      {EngineCase::kBatch, "sf_mamba_t", model::Precision::kFloat32, 128});
}

void AddFolds(std::vector<EngineCase>* cases) {
  for (const int fold_rows : {0, 1, 4, 128}) {
    cases->push_back({EngineCase::kFold, "mamba_vision_t",
                      model::Precision::kBFloat16, 128, 224, false, fold_rows});
  }
}

void AddResolutions(std::vector<EngineCase>* cases) {
  for (const int side : kSides) {
    for (const bool club : {false, true}) {
      if (club && side < kFirstClubSide) continue;
      for (const int batch : {32, 1}) {
        cases->push_back({EngineCase::kResolution, "sf_mamba_t",
                          model::Precision::kBFloat16, batch, side, club});
      }
    }
  }
}

}  // namespace

model::ModelConfig EngineCase::Config(bool tiny) const {
  model::ModelConfig config = *model::VariantConfig(variant);
  config.precision = precision;
  config.image_size = side;
  model::BackboneConfig& backbone = config.backbone;
  if (group == kResolution) backbone.window_mode = model::WindowMode::kFull;
  if (club) backbone.attention_windows = {kClubWindow, kClubWindow};
  if (tiny) {
    config.image_size = kTinySide;
    config.num_classes = 10;
    backbone.dim = 16;
    backbone.in_dim = 8;
    backbone.depths = {1, 1, 2, 2};
    backbone.num_heads = {1, 2, 4, 8};
    backbone.windows = {4, 2};
  }
  return config;
}

int EngineCase::RunBatch(bool tiny) const {
  return tiny ? std::min(batch, kTinyBatch) : batch;
}

model::ModelOptions EngineCase::Options(model::ModelOptions device,
                                        bool tiny) const {
  device.fold_rows = tiny ? std::min(fold_rows, kTinyBatch) : fold_rows;
  device.slots_per_gpu = slots;
  return device;
}

std::vector<EngineCase> EngineCases(const EngineFilter& filter) {
  std::vector<EngineCase> all;
  AddBatches(&all);
  AddFolds(&all);
  AddResolutions(&all);
  std::vector<EngineCase> cases;
  for (const int slots : filter.slots) {
    for (EngineCase engine : all) {
      engine.slots = slots;
      if (Allows(filter, engine)) cases.push_back(engine);
    }
  }
  return cases;
}

bool SameModel(const EngineCase& a, const EngineCase& b) {
  return a.group == b.group && a.variant == b.variant &&
         a.precision == b.precision && a.side == b.side && a.club == b.club &&
         a.fold_rows == b.fold_rows && a.slots == b.slots;
}

absl::StatusOr<EngineCase> ParseEngineCase(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  EngineCase engine{EngineCase::kBatch};
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[2], &engine.batch) ||
      engine.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected VARIANT,PRECISION,BATCH, got \"", text, "\""));
  }
  const absl::StatusOr<model::ModelConfig> config =
      model::VariantConfig(parts[0]);
  if (!config.ok()) return config.status();
  engine.variant = parts[0];
  for (const auto& [precision, name] : kPrecisions) {
    engine.precision = precision;
    if (parts[1] == name) return engine;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected bf16, fp16 or fp32, got \"", parts[1], "\""));
}

std::string Json(const EngineFigure& figure, const Setting& setting) {
  const EngineCase& engine = figure.engine;
  return absl::StrFormat(
      R"({"benchmark": "engine", "group": "%s", "variant": %s, )"
      R"("precision": "%s", "batch": %d, "side": %d, "club": %s, )"
      R"("fold_rows": %d, "slots": %d, "tuned": %s, )"
      R"("images_per_second": %.2f, "ms": %.4f, "ms_p10": %.4f, )"
      R"("ms_p90": %.4f, "device_ms": %.4f, "device_ms_p10": %.4f, )"
      R"("device_ms_p90": %.4f, "sustained_ms": %.4f, )"
      R"("sustained_mhz": %d, "sustained_watts": %.0f, )"
      R"("overlapped_images_per_second": %.2f, )"
      R"("padded_images": %d, "device_mib": %.0f, )"
      R"("round": %d, "sm_mhz": %d, "watts": %.0f, )"
      R"("note": %s, "uncaptured": %s, %s})",
      kGroups[engine.group], base::JsonString(engine.variant),
      NameOf(engine.precision), engine.batch, engine.side, Bool(engine.club),
      engine.fold_rows, engine.slots, Bool(figure.tuned),
      figure.images_per_second, figure.ms.median, figure.ms.p10, figure.ms.p90,
      figure.device_ms.median, figure.device_ms.p10, figure.device_ms.p90,
      figure.sustained_ms, figure.sustained_clocks.sm_mhz,
      figure.sustained_clocks.watts, figure.overlapped_images_per_second,
      figure.padded_images, figure.mib, figure.round, figure.clocks.sm_mhz,
      figure.clocks.watts, base::JsonString(figure.note),
      base::JsonString(figure.uncaptured), setting.Json());
}

}  // namespace sfmamba
