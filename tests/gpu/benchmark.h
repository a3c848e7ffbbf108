#ifndef SFMAMBA_TESTS_GPU_BENCHMARK_H_
#define SFMAMBA_TESTS_GPU_BENCHMARK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/gpu/engine_figures.h"
#include "tests/gpu/scan_figures.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// Called with a line of JSON for each measurement.
using WriteLine = std::function<void(const std::string& line)>;

// In this header, `tiny` selects minimal sizes, for rehearsals whose figures
// are meaningless.

// Describes the first GPU and measures its copy bandwidth.
absl::StatusOr<Setting> ReadSetting(bool tiny);
// Reads the GPU's clocks. Returns zeros if there is no nvidia-smi.
Clocks ReadClocks();

// Measures each case on the first GPU. Writes each plan of ScanCase::kPaper,
// and the fastest plan of each kernel for other groups.
absl::Status MeasureScans(const std::vector<ScanCase>& cases,
                          const Setting& setting, const WriteLine& write);

// Measures the reproduction of the paper's bucketed block scan on the cases of
// ScanCase::kPaper, with each B1.
absl::Status MeasureBucketScans(const std::vector<ScanCase>& cases,
                                const Setting& setting, const WriteLine& write);

// Measures the kernels between matrix products on the models' shapes.
absl::Status MeasurePasses(const Setting& setting, bool tiny,
                           const WriteLine& write);

struct EngineOptions {
  // The options to load models with, including the scan plans if there are any.
  model::ModelOptions device;
  // The duration of each measurement. There are two per case.
  absl::Duration duration = absl::Seconds(1);
  // The duration of a graph's replays without pauses, of one context and of all
  // at once; zero leaves both out.
  absl::Duration sustained = absl::ZeroDuration();
  // All models are measured in turn this many times: what a card does moves by
  // several percent within minutes, so only neighbours can be compared.
  int rounds = 1;
  bool tiny = false;
};

// Measures each model with one caller and with a caller for each context, after
// warming up the contexts. If a case does not fit into memory, its figure's
// note says so.
void MeasureEngines(const std::vector<EngineCase>& cases,
                    const EngineOptions& options, const Setting& setting,
                    const WriteLine& write);

// Runs one batch without a graph, after warming up, between StartProfiler() and
// StopProfiler().
absl::Status RunOnce(const EngineCase& engine, const EngineOptions& options);

// Measures scan plans on the first GPU, writes their table to `path`, and
// writes a line of JSON for each shape.
absl::Status Tune(const std::string& path, absl::Duration budget, bool tiny,
                  const Setting& setting, const WriteLine& write);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_BENCHMARK_H_
