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

// Returns the scans of the published models in each type, and the scans of
// whole maps. The most valuable ones come first.
std::vector<tuning::ScanShape> ShapesToTune();

// Measures scans for a search. Writes a line of JSON for each shape, with the
// fastest plan, the default plan and the fastest plan without folding.
class TuneRecorder {
 public:
  TuneRecorder(const Setting& setting, tuning::MeasureScan measure,
               std::function<void(const std::string& line)> write);

  // Measures a scan, as a tuning::MeasureScan. Writes the line of a shape when
  // the next shape begins.
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
