#include <cstdio>

#include "model/tuning/scan_search.h"
#include "model/tuning/scan_timer.h"
#include "tests/gpu/benchmark.h"
#include "tests/gpu/tune_figures.h"

namespace sfmamba {

absl::Status Tune(const std::string& path, absl::Duration budget, bool tiny,
                  const Setting& setting, const WriteLine& write) {
  const absl::StatusOr<tuning::ScanDevice> device =
      tuning::ScanDeviceOf(/*gpu=*/0);
  if (!device.ok()) return device.status();
  const absl::StatusOr<tuning::MeasureScan> measure =
      tuning::MakeScanTimer(/*gpu=*/0);
  if (!measure.ok()) return measure.status();
  std::vector<tuning::ScanShape> shapes = ShapesToTune();
  if (tiny) shapes = {{tuning::ScanShape::kBFloat16, 8, 8, 4, 3, false}};
  TuneRecorder recorder(setting, *measure, write);
  tuning::ScanSearchOptions options;
  options.budget = budget;
  const absl::StatusOr<tuning::ScanPlanTable> table = tuning::TuneToFile(
      *device, shapes,
      [&](const tuning::ScanShape& shape, const kernels::ScanPlan& plan) {
        return recorder.Measure(shape, plan);
      },
      options, path);
  recorder.Finish();
  if (!table.ok()) return table.status();
  std::printf("%d of %d shapes tuned for %s\n",
              static_cast<int>(table->entries().size()),
              static_cast<int>(shapes.size()), table->device().name.c_str());
  return absl::OkStatus();
}

}  // namespace sfmamba
