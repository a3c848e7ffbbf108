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

// A model whose scans are to be tuned.
struct ModelToTune {
  ModelConfig config;
  int max_batch = 1;  // The most images in a batch.
};

// What was measured of the scans of some models.
struct ScanMeasurement {
  int unknown = 0;   // Scans without an entry in the table.
  int measured = 0;  // Scans of these that got one.
  absl::Duration time;
};

// Finds the fastest plans for the scans of models on one GPU while they are
// loaded. Before each model is loaded, the scans that the fold table lacks are
// measured and the table's file is updated, so that the next start need not
// measure them.
//
//   auto tuner = ScanTuner::Create(/*gpu=*/0, options);
//   model_options.scan_plans = (*tuner)->PlansFor({config, max_batch});
//   auto model = VisionModel::Load(config, {weights_path}, model_options);
//
// Not thread-safe.
class ScanTuner {
 public:
  struct Options {
    // The fold table's file, which need not exist yet. If empty, there is none.
    // The table of another kind of GPU is ignored, and its file left unchanged.
    std::string path;
    // The time to measure the scans of one model. Scans that are not finished
    // use the plan of the nearest entry. With 0 nothing is measured.
    absl::Duration budget;
    // Called whenever scans were measured.
    std::function<void(const ScanMeasurement&)> measured =
        [](const ScanMeasurement&) {};
    // Called with an error despite which models can be loaded: the file is
    // another GPU's or cannot be written, or scans cannot be measured.
    std::function<void(const absl::Status&)> failed = [](const absl::Status&) {
    };
  };

  // Reads the file and returns its error if it exists but is no valid table.
  // FAILED_PRECONDITION in a build without CUDA.
  static absl::StatusOr<std::unique_ptr<ScanTuner>> Create(
      int gpu, const Options& options);

  virtual ~ScanTuner() = default;

  // Measures the model's unknown scans within the budget. Returns all known
  // plans, for ModelOptions::scan_plans.
  virtual std::shared_ptr<const tuning::ScanPlanTable> PlansFor(
      const ModelToTune& model) = 0;
};

// Measures the scans of all `models` on a GPU for at most a minute and writes
// the fold table to `path`, replacing the file. FAILED_PRECONDITION in a build
// without CUDA.
absl::StatusOr<ScanMeasurement> TuneScans(int gpu,
                                          absl::Span<const ModelToTune> models,
                                          const std::string& path);

}  // namespace sfmamba::model

#endif  // SFMAMBA_MODEL_SCAN_TUNING_H_
