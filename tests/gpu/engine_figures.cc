#include "tests/gpu/engine_figures.h"

#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace sfmamba {
namespace {

constexpr int kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
constexpr int kSides[] = {224, 448, 896, 1792, 3584};
constexpr int kFirstClubSide = 896;  // Smaller maps have no 32 x 32 windows.
constexpr int kClubWindow = 32;

// Source: SF-Mamba, the tables of throughput by model, batch, resolution and
// implementation.
struct PaperFigure {
  EngineCase::Group group;
  const char* variant;
  int batch, side;
  bool club;
  int fold_rows;
  double images_per_second;
};
constexpr auto kBatch = EngineCase::kBatch;
constexpr auto kResolution = EngineCase::kResolution;
constexpr auto kFold = EngineCase::kFold;
constexpr PaperFigure kPaper[] = {
    {kBatch, "mamba_vision_t", 1, 224, false, 0, 119},
    {kBatch, "mamba_vision_t", 32, 224, false, 0, 3770},
    {kBatch, "mamba_vision_t", 128, 224, false, 0, 6662},
    {kBatch, "mamba_vision_t", 256, 224, false, 0, 7025},
    {kBatch, "mamba_vision_t", 512, 224, false, 0, 7134},
    {kBatch, "sf_mamba_t", 1, 224, false, 0, 126},
    {kBatch, "sf_mamba_t", 32, 224, false, 0, 3962},
    {kBatch, "sf_mamba_t", 128, 224, false, 0, 7600},
    {kBatch, "sf_mamba_t", 256, 224, false, 0, 7801},
    {kBatch, "sf_mamba_t", 512, 224, false, 0, 8009},
    {kBatch, "mamba_vision_s", 128, 224, false, 0, 4933},
    {kBatch, "sf_mamba_s", 128, 224, false, 0, 5639},
    {kBatch, "mamba_vision_b", 1, 224, false, 0, 96},
    {kBatch, "mamba_vision_b", 32, 224, false, 0, 2798},
    {kBatch, "mamba_vision_b", 128, 224, false, 0, 2974},
    {kBatch, "mamba_vision_b", 256, 224, false, 0, 3128},
    {kBatch, "mamba_vision_b", 512, 224, false, 0, 3176},
    {kBatch, "sf_mamba_b", 1, 224, false, 0, 98},
    {kBatch, "sf_mamba_b", 32, 224, false, 0, 3168},
    {kBatch, "sf_mamba_b", 128, 224, false, 0, 3534},
    {kBatch, "sf_mamba_b", 256, 224, false, 0, 3592},
    {kBatch, "sf_mamba_b", 512, 224, false, 0, 3641},
    {kResolution, "sf_mamba_t", 32, 224, false, 0, 3962},
    {kResolution, "sf_mamba_t", 32, 448, false, 0, 1777},
    {kResolution, "sf_mamba_t", 32, 896, false, 0, 397},
    {kResolution, "sf_mamba_t", 32, 1792, false, 0, 61},
    {kResolution, "sf_mamba_t", 32, 3584, false, 0, 6},
    {kResolution, "sf_mamba_t", 32, 896, true, 0, 427},
    {kResolution, "sf_mamba_t", 32, 1792, true, 0, 105},
    {kResolution, "sf_mamba_t", 32, 3584, true, 0, 27},
    {kResolution, "sf_mamba_t", 1, 224, false, 0, 126},
    {kResolution, "sf_mamba_t", 1, 448, false, 0, 126},
    {kResolution, "sf_mamba_t", 1, 896, false, 0, 125},
    {kResolution, "sf_mamba_t", 1, 1792, false, 0, 54},
    {kResolution, "sf_mamba_t", 1, 3584, false, 0, 6},
    {kResolution, "sf_mamba_t", 1, 896, true, 0, 120},
    {kResolution, "sf_mamba_t", 1, 1792, true, 0, 89},
    {kResolution, "sf_mamba_t", 1, 3584, true, 0, 26},
    {kFold, "mamba_vision_t", 128, 224, false, 1, 7601},
    {kFold, "mamba_vision_t", 128, 224, false, 4, 7641},
    {kFold, "mamba_vision_t", 128, 224, false, 0, 7685},
};

const char* NameOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "fp32";
    case Precision::kFloat16:
      return "fp16";
    case Precision::kBFloat16:
      break;
  }
  return "bf16";
}

const char* Bool(bool value) { return value ? "true" : "false"; }

// The figure, or why there is none.
std::string Cell(const EngineFigure& figure) {
  if (!figure.note.empty()) return figure.note;
  return absl::StrFormat("%.0f", figure.images_per_second);
}

const EngineFigure* Find(const std::vector<EngineFigure>& figures,
                         const std::function<bool(const EngineCase&)>& is) {
  for (const EngineFigure& figure : figures) {
    if (is(figure.engine)) return &figure;
  }
  return nullptr;
}

// A row of images per second: `at` says the case of each column.
template <size_t kCount>
std::string RowOf(const std::vector<EngineFigure>& figures,
                  const std::string& name, const int (&columns)[kCount],
                  const std::function<bool(const EngineCase&, int)>& is) {
  std::string text = absl::StrCat("| ", name);
  for (const int column : columns) {
    const EngineFigure* figure =
        Find(figures, [&](const EngineCase& one) { return is(one, column); });
    absl::StrAppend(&text, " | ", figure == nullptr ? "-" : Cell(*figure));
  }
  return text + " |\n";
}

// The same of the paper's figures.
template <size_t kCount>
std::string PaperRow(const std::string& name, const int (&columns)[kCount],
                     const std::function<EngineCase(int)>& at) {
  std::string text = absl::StrCat("| ", name);
  for (const int column : columns) {
    const double figure = PaperImagesPerSecond(at(column));
    absl::StrAppend(&text, " | ", figure == 0 ? "-" : absl::StrCat(figure));
  }
  return text + " |\n";
}

template <size_t kCount>
std::string Head(const std::string& name, const int (&columns)[kCount]) {
  std::string text = absl::StrCat("| ", name), line = "|---";
  for (const int column : columns) {
    absl::StrAppend(&text, " | ", column);
    absl::StrAppend(&line, "|---");
  }
  return absl::StrCat(text, " |\n", line, "|\n");
}

std::string BatchTable(const std::vector<EngineFigure>& figures) {
  std::string text = Head("images/s, 224 x 224, batch", kBatches);
  for (const char* variant :
       {"sf_mamba_t", "mamba_vision_t", "sf_mamba_s", "mamba_vision_s",
        "sf_mamba_b", "mamba_vision_b"}) {
    for (const Precision precision :
         {Precision::kBFloat16, Precision::kFloat16}) {
      const auto is = [&](const EngineCase& one, int batch) {
        return one.group == kBatch && one.precision == precision &&
               absl::string_view(one.variant) == variant && one.batch == batch;
      };
      if (Find(figures, [&](const EngineCase& one) {
            return is(one, one.batch);
          }) == nullptr) {
        continue;
      }
      absl::StrAppend(
          &text, RowOf(figures, absl::StrCat(variant, ", ", NameOf(precision)),
                       kBatches, is));
    }
    absl::StrAppend(
        &text,
        PaperRow(
            absl::StrCat(variant, ", the paper (A100)"), kBatches,
            [&](int batch) {
              return EngineCase{kBatch, variant, Precision::kBFloat16, batch};
            }));
  }
  return text;
}

std::string LatencyTable(const std::vector<EngineFigure>& figures) {
  std::string text =
      "| model | precision | batch | ms median (p10, p90) | MiB |\n"
      "|---|---|---|---|---|\n";
  for (const EngineFigure& figure : figures) {
    const EngineCase& engine = figure.engine;
    const bool shown =
        engine.batch == 1 || engine.batch == 32 || engine.batch == 128;
    if (engine.group != kBatch || !shown || !figure.note.empty()) continue;
    absl::StrAppendFormat(
        &text, "| %s | %s | %d | %.3f (%.3f, %.3f) | %.0f |\n", engine.variant,
        NameOf(engine.precision), engine.batch, figure.ms.median, figure.ms.p10,
        figure.ms.p90, figure.mib);
  }
  return text;
}

std::string ResolutionTable(const std::vector<EngineFigure>& figures) {
  std::string text = Head("images/s, sf_mamba_t, pixels a side", kSides);
  for (const int batch : {32, 1}) {
    for (const bool club : {false, true}) {
      const std::string name =
          absl::StrCat("batch ", batch, club ? ", club" : "");
      absl::StrAppend(
          &text,
          RowOf(figures, name, kSides,
                [&](const EngineCase& one, int side) {
                  return one.group == kResolution && one.batch == batch &&
                         one.club == club && one.side == side;
                }),
          PaperRow(absl::StrCat(name, ", the paper (A100)"), kSides,
                   [&](int side) {
                     return EngineCase{
                         kResolution, "sf_mamba_t", Precision::kBFloat16,
                         batch,       side,         club};
                   }));
    }
  }
  return text;
}

std::string MemoryTable(const std::vector<EngineFigure>& figures) {
  std::string text =
      "| pixels a side | batch | club | MiB |\n|---|---|---|---|\n";
  for (const EngineFigure& figure : figures) {
    const EngineCase& engine = figure.engine;
    if (engine.group != kResolution) continue;
    absl::StrAppend(
        &text, "| ", engine.side, " | ", engine.batch, " | ",
        engine.club ? "yes" : "no", " | ",
        figure.note.empty() ? absl::StrFormat("%.0f", figure.mib) : figure.note,
        " |\n");
  }
  return text;
}

std::string FoldTableOf(const std::vector<EngineFigure>& figures) {
  std::string text =
      "| mamba_vision_t, batch 128, B1 | images/s | the paper (A100) |\n"
      "|---|---|---|\n";
  for (const EngineFigure& figure : figures) {
    const EngineCase& engine = figure.engine;
    if (engine.group != kFold) continue;
    absl::StrAppend(&text, "| ",
                    engine.fold_rows == 0 ? "adaptive: the engine's choice"
                                          : absl::StrCat(engine.fold_rows),
                    " | ", Cell(figure), " | ", PaperImagesPerSecond(engine),
                    " |\n");
  }
  return text;
}

}  // namespace

ModelConfig EngineCase::Config() const {
  ModelConfig config = *VariantConfig(variant);
  config.precision = precision;
  config.image_size = side;
  if (group == kResolution) config.backbone.window_mode = WindowMode::kFull;
  if (club) config.backbone.attention_windows = {kClubWindow, kClubWindow};
  return config;
}

ModelOptions EngineCase::Options() const {
  ModelOptions options;
  options.gpus = {0};
  options.fold_rows = fold_rows;
  return options;
}

std::vector<EngineCase> EngineCases() {
  std::vector<EngineCase> cases;
  for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
    for (const Precision precision :
         {Precision::kBFloat16, Precision::kFloat16}) {
      for (const int batch : kBatches) {
        cases.push_back({kBatch, variant, precision, batch});
      }
    }
  }
  for (const char* variant :
       {"mamba_vision_t", "mamba_vision_s", "mamba_vision_b"}) {
    for (const int batch : {1, 32, 128}) {
      cases.push_back({kBatch, variant, Precision::kBFloat16, batch});
    }
  }
  for (const int fold_rows : {1, 4, 0}) {
    cases.push_back({kFold, "mamba_vision_t", Precision::kBFloat16, 128, 224,
                     false, fold_rows});
  }
  for (const int batch : {1, 32}) {
    for (const int side : kSides) {
      for (const bool club : {false, true}) {
        if (club && side < kFirstClubSide) continue;
        cases.push_back({kResolution, "sf_mamba_t", Precision::kBFloat16, batch,
                         side, club});
      }
    }
  }
  return cases;
}

double PaperImagesPerSecond(const EngineCase& engine) {
  for (const PaperFigure& figure : kPaper) {
    if (figure.group == engine.group &&
        absl::string_view(figure.variant) == engine.variant &&
        figure.batch == engine.batch && figure.side == engine.side &&
        figure.club == engine.club && figure.fold_rows == engine.fold_rows) {
      return figure.images_per_second;
    }
  }
  return 0;
}

std::string Json(const EngineFigure& figure, const Setting& setting) {
  const EngineCase& engine = figure.engine;
  return absl::StrFormat(
      R"({"benchmark": "engine", "variant": %s, "precision": "%s", )"
      R"("batch": %d, "side": %d, "full_windows": %s, "club": %s, )"
      R"("fold_rows": %d, "images_per_second": %.2f, "ms": %.4f, )"
      R"("ms_p10": %.4f, "ms_p90": %.4f, "device_mib": %.0f, "note": %s, )"
      R"("paper_images_per_second": %g, %s})",
      JsonString(engine.variant), NameOf(engine.precision), engine.batch,
      engine.side, Bool(engine.group == kResolution), Bool(engine.club),
      engine.fold_rows, figure.images_per_second, figure.ms.median,
      figure.ms.p10, figure.ms.p90, figure.mib, JsonString(figure.note),
      PaperImagesPerSecond(engine), setting.Json());
}

std::string Markdown(const std::vector<EngineFigure>& figures) {
  return absl::StrCat("### By batch\n\n", BatchTable(figures),
                      "\n### Latency of one caller\n\n", LatencyTable(figures),
                      "\n### By resolution\n\n", ResolutionTable(figures), "\n",
                      MemoryTable(figures), "\n### By B1\n\n",
                      FoldTableOf(figures));
}

}  // namespace sfmamba
