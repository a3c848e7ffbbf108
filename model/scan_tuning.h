#ifndef SFMAMBA_MODEL_SCAN_TUNING_H_
#define SFMAMBA_MODEL_SCAN_TUNING_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/config.h"

namespace sfmamba::tuning {
class ScanPlanTable;
}  // namespace sfmamba::tuning

namespace sfmamba::model {

// A model whose scans must be tuned.
struct ModelToTune {
  ModelConfig config;
  int max_batch = 1;  // The largest number of images in a batch.
};

// The result of measuring the scans of some models.
struct ScanMeasurement {
  int unknown = 0;   // Scans without an entry in the table.
  int measured = 0;  // Those of them that got an entry.
  absl::Duration time;
};

// Finds the fastest plan (way to run a scan) for each scan of a model on one
// GPU. Before a model is loaded, this measures the scans that the fold table
// lacks, and updates the table's file. The next start of the process need not
// measure these scans again.
//
//   auto tuner = ScanTuner::Create(/*gpu=*/0, options);
//   model_options.scan_plans = (*tuner)->PlansFor({config, max_batch});
//   auto model = VisionModel::Load(config, {weights_path}, model_options);
//
// Not thread-safe.
class ScanTuner {
 public:
  struct Options {
    // The file of the fold table, the table of measured plans. The file need
    // not exist yet. If the path is empty, no file is used. A file that belongs
    // to another kind of GPU is ignored and left unchanged.
    std::string path;
    // The time limit for measuring the scans of one model. A scan that is not
    // measured in this time uses the plan of the nearest entry. With 0, no scan
    // is measured.
    absl::Duration budget;
    // Called whenever scans have been measured.
    std::function<void(const ScanMeasurement&)> measured =
        [](const ScanMeasurement&) {};
    // Called with an error that does not prevent the loading of a model. For
    // example, the file belongs to another GPU or is not writable, or scans
    // cannot be measured.
    std::function<void(const absl::Status&)> failed = [](const absl::Status&) {
    };
  };

  // Reads the file. Returns an error if the file exists but is not a valid
  // table. Returns FAILED_PRECONDITION in a build without CUDA.
  static absl::StatusOr<std::unique_ptr<ScanTuner>> Create(
      int gpu, const Options& options);

  virtual ~ScanTuner() = default;

  // Measures the scans of the model that the table lacks, within the budget.
  // Returns all known plans, which may be used as ModelOptions::scan_plans.
  virtual std::shared_ptr<const tuning::ScanPlanTable> PlansFor(
      const ModelToTune& model) = 0;
};

// Measures the scans of all `models` on a GPU, for at most a minute. Writes the
// fold table to `path` and replaces an existing file. Returns
// FAILED_PRECONDITION in a build without CUDA.
absl::StatusOr<ScanMeasurement> TuneScans(int gpu,
                                          absl::Span<const ModelToTune> models,
                                          const std::string& path);

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_SCAN_TUNING_H_
