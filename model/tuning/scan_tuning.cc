#include "model/scan_tuning.h"

#include <utility>
#include <vector>

#include "model/tuning/incremental_tuner.h"
#include "model/tuning/model_scans.h"
#include "model/tuning/scan_search.h"
#include "model/tuning/scan_timer.h"

namespace sfmamba {
namespace tuning {
namespace {

// Tunes by measuring on a GPU of this machine.
class GpuScanTuner : public model::ScanTuner {
 public:
  explicit GpuScanTuner(std::unique_ptr<IncrementalTuner> tuner)
      : tuner_(std::move(tuner)) {}

  std::shared_ptr<const ScanPlanTable> PlansFor(
      const model::ModelToTune& model) override {
    return std::make_shared<ScanPlanTable>(
        tuner_->TableFor(ScanShapes(model.config, model.max_batch)));
  }

 private:
  const std::unique_ptr<IncrementalTuner> tuner_;
};

}  // namespace
}  // namespace tuning

namespace model {

absl::StatusOr<std::unique_ptr<ScanTuner>> ScanTuner::Create(
    int gpu, const Options& options) {
  const absl::StatusOr<tuning::ScanDevice> device = tuning::ScanDeviceOf(gpu);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<tuning::IncrementalTuner>> tuner =
      tuning::IncrementalTuner::Create(
          options, *device, [gpu] { return tuning::MakeScanTimer(gpu); });
  if (!tuner.ok()) return tuner.status();
  return std::make_unique<tuning::GpuScanTuner>(*std::move(tuner));
}

absl::StatusOr<ScanMeasurement> TuneScans(int gpu,
                                          absl::Span<const ModelToTune> models,
                                          const std::string& path) {
  const absl::StatusOr<tuning::ScanDevice> device = tuning::ScanDeviceOf(gpu);
  if (!device.ok()) return device.status();
  const absl::StatusOr<tuning::MeasureScan> measure =
      tuning::MakeScanTimer(gpu);
  if (!measure.ok()) return measure.status();
  const std::vector<tuning::ScanShape> shapes = tuning::ScanShapes(models);
  const absl::Time start = absl::Now();
  const absl::StatusOr<tuning::ScanPlanTable> table =
      tuning::TuneToFile(*device, shapes, *measure, {}, path);
  if (!table.ok()) return table.status();
  return ScanMeasurement{static_cast<int>(shapes.size()),
                         static_cast<int>(table->entries().size()),
                         absl::Now() - start};
}

}  // namespace model
}  // namespace sfmamba
