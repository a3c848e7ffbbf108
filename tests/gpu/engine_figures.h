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

// A whole model to be measured.
struct EngineCase {
  enum Group {
    // Batch sizes, at 224 x 224 pixels.
    kBatch,
    // Image sizes with windows as large as the map, with and without attention
    // in sub-windows of 32 ("club").
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

  // Return the configuration and the options to load the case with. `device`
  // holds the options of the device. A tiny case has the same name and minimal
  // layers, for rehearsals without a GPU.
  model::ModelConfig Config(bool tiny = false) const;
  model::ModelOptions Options(model::ModelOptions device,
                              bool tiny = false) const;
  // Returns the number of images that are run for `batch`.
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

// Parses "VARIANT,PRECISION,BATCH". INVALID_ARGUMENT that says what is wrong.
absl::StatusOr<EngineCase> ParseEngineCase(const std::string& text);

struct EngineFigure {
  EngineCase engine;
  bool tuned = false;  // Whether measured scan plans were used.
  // Measured with a caller for each context.
  double images_per_second = 0;
  // The milliseconds of a batch with one caller, from pixels to results.
  kernels::Quantiles ms;
  // The network's part of these, by the GPU's clock.
  kernels::Quantiles device_ms;
  // The milliseconds of one of many replays of the network's graph, which
  // follow each other without pauses, as under a server's full load; 0: not
  // measured.
  double sustained_ms = 0;
  // All contexts replay their graphs at once, so that the passes overlap.
  double overlapped_images_per_second = 0;
  Clocks sustained_clocks;  // In the middle of the replays of one context.
  int padded_images = 0;
  int round = 1;           // Counts the turns in which models are measured.
  Clocks clocks;           // While a caller for each context runs batches.
  double mib = 0;          // Device memory in use during the measurement.
  std::string note;        // Why there is no figure: "OOM" or an error.
  std::string uncaptured;  // Why a graph could not be recorded.
};

// Returns one line without the line break.
std::string Json(const EngineFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
