#ifndef SFMAMBA_TESTS_GPU_BENCHMARK_H_
#define SFMAMBA_TESTS_GPU_BENCHMARK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/gpu/engine_figures.h"
#include "tests/gpu/pass_figures.h"
#include "tests/gpu/scan_figures.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// Takes each line of JSON as it is measured.
using WriteLine = std::function<void(const std::string& line)>;

// The first GPU; its copies are timed for this.
absl::StatusOr<Setting> ReadSetting();
// Zeros without nvidia-smi.
Clocks ReadClocks();

// Measures each case on the first GPU: of ScanCase::kPaper each plan, of the
// others the fastest plan of each kernel.
absl::StatusOr<std::vector<ScanFigure>> MeasureScans(
    const std::vector<ScanCase>& cases, const Setting& setting,
    const WriteLine& write);

// Measures the paper's kernel, as tests/cuda reproduces it, on the cases of
// ScanCase::kPaper with each B1.
absl::StatusOr<std::vector<ScanFigure>> MeasureBucketScans(
    const std::vector<ScanCase>& cases, const Setting& setting,
    const WriteLine& write);

// Measures the kernels between matrix products on the models' shapes.
absl::StatusOr<std::vector<PassFigure>> MeasurePasses(const Setting& setting,
                                                      const WriteLine& write);

// Measures each model for `duration`, and again with as many callers as it has
// slots. What does not fit says so in its figure's note.
std::vector<EngineFigure> MeasureEngines(const std::vector<EngineCase>& cases,
                                         absl::Duration duration,
                                         const Setting& setting,
                                         const WriteLine& write);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_BENCHMARK_H_
