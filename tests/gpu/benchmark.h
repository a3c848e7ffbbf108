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

// Takes each line of JSON as it is measured.
using WriteLine = std::function<void(const std::string& line)>;

// Below, `tiny` stands for sizes that cost nothing: a rehearsal, whose figures
// mean nothing.

// The first GPU; its copies are timed for this.
absl::StatusOr<Setting> ReadSetting(bool tiny);
// Zeros without nvidia-smi.
Clocks ReadClocks();

// Measures each case on the first GPU: of ScanCase::kPaper each plan, of the
// others the fastest plan of each kernel.
absl::Status MeasureScans(const std::vector<ScanCase>& cases,
                          const Setting& setting, const WriteLine& write);

// Measures our reproduction of the paper's bucketed block scan, of tests/cuda,
// on the cases of ScanCase::kPaper with each B1.
absl::Status MeasureBucketScans(const std::vector<ScanCase>& cases,
                                const Setting& setting, const WriteLine& write);

// Measures the kernels between matrix products on the models' shapes.
absl::Status MeasurePasses(const Setting& setting, bool tiny,
                           const WriteLine& write);

struct EngineOptions {
  model::ModelOptions device;  // With the fold table to load, if there is one.
  // Of each measurement; there are two a case.
  absl::Duration duration = absl::Seconds(1);
  bool tiny = false;
};

// Measures each model with one caller, and with as many as it has slots, once
// each slot is warm. What does not fit says so in its figure's note.
void MeasureEngines(const std::vector<EngineCase>& cases,
                    const EngineOptions& options, const Setting& setting,
                    const WriteLine& write);

// Runs one batch without a graph, once it is warm, between StartProfiler() and
// StopProfiler().
absl::Status RunOnce(const EngineCase& engine, const EngineOptions& options);

// Writes a fold table of the first GPU to `path`, and a line for each shape.
absl::Status Tune(const std::string& path, absl::Duration budget, bool tiny,
                  const Setting& setting, const WriteLine& write);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_BENCHMARK_H_
