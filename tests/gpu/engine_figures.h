#ifndef SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
#define SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/quantiles.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "tests/gpu/setting.h"

namespace sfmamba {

// A measurement of a whole model.
struct EngineCase {
  enum Group {
    // Batch sizes, at 224 x 224 pixels.
    kBatch,
    // Image sizes. Each stage's window is its whole map. Large images are also
    // measured with attention only inside windows of 32 x 32 ("club").
    kResolution,
    // Values of B1, for MambaVision-T at 224 x 224 pixels in batches of 128.
    kFold,
  };
  Group group;
  std::string variant;
  model::Precision precision = model::Precision::kBFloat16;
  int batch = 1;
  int side = 224;
  bool club = false;
  int fold_rows = 0;  // B1; 0 lets the engine choose.
  int slots = 2;

  // Return the configuration and the options for loading the case. `device`
  // contains the options of the device. If `tiny`, the model has minimal layers
  // and the same name, for rehearsals without a GPU.
  model::ModelConfig Config(bool tiny = false) const;
  model::ModelOptions Options(model::ModelOptions device,
                              bool tiny = false) const;
  // Returns the number of images that are really run. In a tiny case, it is
  // less than `batch`.
  int RunBatch(bool tiny) const;
};

// Selects the cases to measure. An empty field selects all.
struct EngineFilter {
  std::vector<std::string> groups;      // "batch", "resolution", "fold"
  std::vector<std::string> variants;    // "sf_mamba_t"
  std::vector<std::string> precisions;  // "bf16", "fp16", "fp32"
  std::vector<int> batches;
  std::vector<int> slots = {2};
};

// Returns the most valuable cases first. Cases that use the same loaded model
// are adjacent.
std::vector<EngineCase> EngineCases(const EngineFilter& filter = {});

// Returns whether the cases can be measured on the same loaded model.
bool SameModel(const EngineCase& a, const EngineCase& b);

// Parses "VARIANT,PRECISION,BATCH". If this fails, returns INVALID_ARGUMENT
// with the reason.
absl::StatusOr<EngineCase> ParseEngineCase(const std::string& text);

struct EngineFigure {
  EngineCase engine;
  bool tuned = false;  // Whether measured scan plans are used.
  // The rate with one caller for each context.
  double images_per_second = 0;
  // The milliseconds of a batch with one caller, from pixels to results.
  kernels::Quantiles ms;
  // The part of `ms` that the network takes on the GPU, in milliseconds. It is
  // measured by the GPU's clock.
  kernels::Quantiles device_ms;
  // The milliseconds per replay if the network's graph is replayed many times
  // without pauses, as under a server's full load. 0 if not measured.
  double sustained_ms = 0;
  // The rate if all contexts replay their graphs at once, so that the replays
  // overlap.
  double overlapped_images_per_second = 0;
  Clocks sustained_clocks;  // In the middle of the replays of one context.
  int padded_images = 0;
  int round = 1;     // The number of the round.
  Clocks clocks;     // While a caller for each context runs batches.
  double mib = 0;    // Device memory in use during the measurement.
  std::string note;  // The reason for a missing figure: "OOM" or an error.
  std::string uncaptured;  // The reason why a graph was not recorded.
};

// Returns one line without the line break.
std::string Json(const EngineFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
