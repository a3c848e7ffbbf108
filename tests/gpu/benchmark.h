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

// If `tiny`, the following functions use minimal sizes. This is for rehearsals,
// whose figures are meaningless.

// Describes the first GPU and measures its copy bandwidth.
absl::StatusOr<Setting> ReadSetting(bool tiny);
// Reads the GPU's clocks. Returns zeros if there is no nvidia-smi.
Clocks ReadClocks();

// Measures each case on the first GPU. For cases of ScanCase::kPaper, writes a
// line for the fastest plan of each kernel with each B1. For other cases,
// writes a line for the fastest plan of each kernel.
absl::Status MeasureScans(const std::vector<ScanCase>& cases,
                          const Setting& setting, const WriteLine& write);

// Measures our reproduction of the paper's bucketed block scan on the cases of
// ScanCase::kPaper. B1 (the number of rows that the sequences form) is each
// power of two up to the number of sequences.
absl::Status MeasureBucketScans(const std::vector<ScanCase>& cases,
                                const Setting& setting, const WriteLine& write);

// Measures the kernels between matrix products on the models' shapes.
absl::Status MeasurePasses(const Setting& setting, bool tiny,
                           const WriteLine& write);

struct EngineOptions {
  // The options for loading models, including the scan plans if there are any.
  model::ModelOptions device;
  // The duration of each measurement. There are two per case.
  absl::Duration duration = absl::Seconds(1);
  // How long one context replays a graph without pauses. All contexts then
  // replay their graphs at once, each as many times as the one context before.
  // If zero, both are skipped.
  absl::Duration sustained = absl::ZeroDuration();
  // The number of rounds. Each round measures all models. A GPU's speed changes
  // by several percent within minutes, so only measurements of the same round
  // can be compared.
  int rounds = 1;
  bool tiny = false;
};

// Measures each model with one caller, and with one caller for each context.
// The contexts are warmed up before. If a case does not fit into memory, its
// EngineFigure::note is "OOM".
void MeasureEngines(const std::vector<EngineCase>& cases,
                    const EngineOptions& options, const Setting& setting,
                    const WriteLine& write);

// Warms up, then runs one batch without a graph between StartProfiler() and
// StopProfiler().
absl::Status RunOnce(const EngineCase& engine, const EngineOptions& options);

// Measures scan plans on the first GPU. Writes their table to `path`, and a
// line of JSON for each shape.
absl::Status Tune(const std::string& path, absl::Duration budget, bool tiny,
                  const Setting& setting, const WriteLine& write);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_BENCHMARK_H_
