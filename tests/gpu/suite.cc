// Everything that needs a GPU in one program. It needs a driver and libtorch
// for CUDA, and the repository as its working directory:
//   suite                          the tests (--gtest_filter and so on)
//   suite --benchmark --out=DIR    figures: DIR/gpu.jsonl and DIR/gpu.md
//   suite --tune=FILE              a fold table of this device

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/scan_timer_cuda.h"
#include "model/scan_shapes.h"
#include "tests/cuda/device_memory.h"
#include "tests/gpu/benchmark.h"

ABSL_FLAG(bool, benchmark, false, "measure instead of testing");
ABSL_FLAG(std::string, parts, "scan,pass,engine", "of the benchmark");
ABSL_FLAG(std::string, variants, "",
          "of the engine's benchmark, such as sf_mamba_t; empty: all");
ABSL_FLAG(absl::Duration, duration, absl::Seconds(1),
          "of each measurement of a whole model, twice");
ABSL_FLAG(std::string, out, ".", "folder for gpu.jsonl and gpu.md");
ABSL_FLAG(std::string, tune, "", "write a fold table to this file");
ABSL_FLAG(absl::Duration, tune_budget, absl::Minutes(3), "time for --tune");

namespace sfmamba {
namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

// The scans of the published sizes in each type, and those of whole maps.
std::vector<ScanShape> ShapesToTune() {
  std::vector<ScanShape> shapes;
  for (const Precision precision :
       {Precision::kBFloat16, Precision::kFloat16, Precision::kFloat32}) {
    for (const char* variant : {"sf_mamba_t", "sf_mamba_s", "sf_mamba_b"}) {
      for (const bool whole_map : {false, true}) {
        ModelConfig config = *VariantConfig(variant);
        config.precision = precision;
        if (whole_map) {
          config.image_size = 896;
          config.backbone.window_mode = WindowMode::kFull;
        }
        for (const ScanShape& shape : ScanShapes(config, whole_map ? 8 : 512)) {
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

int Tune(const std::string& path) {
  TuneOptions options;
  options.budget = absl::GetFlag(FLAGS_tune_budget);
  const absl::StatusOr<ScanDevice> device = ScanDeviceOf(/*gpu=*/0);
  if (!device.ok()) return Fail(device.status());
  const absl::StatusOr<MeasureScan> measure = MakeScanTimer(/*gpu=*/0);
  if (!measure.ok()) return Fail(measure.status());
  const std::vector<ScanShape> shapes = ShapesToTune();
  const absl::StatusOr<FoldTable> table =
      TuneScans(*device, shapes, *measure, options);
  if (!table.ok()) return Fail(table.status());
  std::printf("%d of %d shapes tuned for %s\n",
              static_cast<int>(table->entries().size()),
              static_cast<int>(shapes.size()), table->device().name.c_str());
  const absl::Status written = table->Write(path);
  return written.ok() ? 0 : Fail(written);
}

std::vector<EngineCase> ChosenEngineCases() {
  const std::string variants = absl::GetFlag(FLAGS_variants);
  std::vector<EngineCase> chosen;
  for (const EngineCase& engine : EngineCases()) {
    if (variants.empty() || absl::StrContains(variants, engine.variant)) {
      chosen.push_back(engine);
    }
  }
  return chosen;
}

int Benchmark() {
  const std::string folder = absl::GetFlag(FLAGS_out);
  const std::string parts = absl::GetFlag(FLAGS_parts);
  std::ofstream lines(absl::StrCat(folder, "/gpu.jsonl"), std::ios::app);
  const WriteLine write = [&](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    lines << line << std::endl;
  };
  const absl::StatusOr<Setting> setting = ReadSetting();
  if (!setting.ok()) return Fail(setting.status());
  const Clocks before = ReadClocks();
  std::string text = absl::StrCat("## ", setting->Text(), "\n\n");
  if (absl::StrContains(parts, "scan")) {
    auto figures = MeasureScans(ScanCases(), *setting, write);
    if (!figures.ok()) return Fail(figures.status());
    const auto buckets = MeasureBucketScans(ScanCases(), *setting, write);
    if (!buckets.ok()) return Fail(buckets.status());
    figures->insert(figures->end(), buckets->begin(), buckets->end());
    absl::StrAppend(&text, Markdown(*figures, *setting), "\n");
  }
  if (absl::StrContains(parts, "pass")) {
    const auto figures = MeasurePasses(*setting, write);
    if (!figures.ok()) return Fail(figures.status());
    absl::StrAppend(&text, Markdown(*figures, *setting), "\n");
  }
  if (absl::StrContains(parts, "engine")) {
    absl::StrAppend(&text,
                    Markdown(MeasureEngines(ChosenEngineCases(),
                                            absl::GetFlag(FLAGS_duration),
                                            *setting, write)),
                    "\n");
  }
  absl::StrAppend(&text, "Before: ", before.Text(),
                  "; after: ", ReadClocks().Text(), ".\n");
  std::ofstream out(absl::StrCat(folder, "/gpu.md"), std::ios::app);
  out << text;
  std::printf("%s", text.c_str());
  out.close();
  lines.close();
  if (out && lines) return 0;
  return Fail(absl::UnavailableError(absl::StrCat("cannot write to ", folder)));
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  const std::string tune = absl::GetFlag(FLAGS_tune);
  if (!sfmamba::HasDevice()) {
    std::fprintf(stderr, "skipped: no GPU\n");
    return 0;
  }
  if (!tune.empty()) return sfmamba::Tune(tune);
  if (absl::GetFlag(FLAGS_benchmark)) return sfmamba::Benchmark();
  return RUN_ALL_TESTS();
}
