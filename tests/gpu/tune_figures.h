#ifndef SFMAMBA_TESTS_GPU_TUNE_FIGURES_H_
#define SFMAMBA_TESTS_GPU_TUNE_FIGURES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"
#include "model/tuning/scan_search.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// Returns the shapes of scans to tune. First come the scans of the published
// models in bf16, fp16 and fp32. Then come the scans of the same models for
// images of 896 x 896 pixels, whose mixers scan the whole map instead of
// windows. Tuning ends when its time is over, so the scans that matter most
// come first.
std::vector<tuning::ScanShape> ShapesToTune();

// Measures scans for a search for the fastest plans. Writes a line of JSON for
// each shape. The line has the fastest plan, the default plan, their times, and
// the time of the fastest plan without folding.
class TuneRecorder {
 public:
  TuneRecorder(const Setting& setting, tuning::MeasureScan measure,
               std::function<void(const std::string& line)> write);

  // Measures a scan. Has the parameters and the result of tuning::MeasureScan.
  // If `shape` differs from the last call's shape, first writes the line of the
  // last call's shape.
  absl::StatusOr<double> Measure(const tuning::ScanShape& shape,
                                 const kernels::ScanPlan& plan);

  // Writes the line of the last shape.
  void Finish();

 private:
  struct Timed {
    kernels::ScanPlan plan;
    double us;
  };

  const Setting setting_;
  const tuning::MeasureScan measure_;
  const std::function<void(const std::string& line)> write_;
  tuning::ScanShape shape_;
  std::vector<Timed> timed_;  // The plans of shape_, the default first.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_TUNE_FIGURES_H_
