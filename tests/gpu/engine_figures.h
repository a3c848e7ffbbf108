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
    kBatch,       // 224 x 224 pixels, by batch.
    kResolution,  // Windows as large as the map, by side, with and without
                  // attention in windows of 32 ("club").
    kFold,        // MambaVision-T, 224 x 224, batch 128, by B1.
  };
  Group group;
  std::string variant;
  model::Precision precision = model::Precision::kBFloat16;
  int batch = 1;
  int side = 224;
  bool club = false;
  int fold_rows = 0;  // B1; 0: the engine's choice.
  int slots = 2;

  // What the case is loaded as; `device` says where. A tiny case has the same
  // name and layers that cost nothing, for rehearsals without a GPU.
  model::ModelConfig Config(bool tiny = false) const;
  model::ModelOptions Options(model::ModelOptions device,
                              bool tiny = false) const;
  // Images that are run for `batch`.
  int RunBatch(bool tiny) const;
};

// Which cases to measure; what is empty leaves out none.
struct EngineFilter {
  std::vector<std::string> groups;      // "batch", "resolution", "fold"
  std::vector<std::string> variants;    // "sf_mamba_t"
  std::vector<std::string> precisions;  // "bf16", "fp16", "fp32"
  std::vector<int> batches;
  std::vector<int> slots = {2};
};

// The most valuable cases first; those of one loaded model in succession.
std::vector<EngineCase> EngineCases(const EngineFilter& filter = {});

// Whether the cases may be measured on one loaded model.
bool SameModel(const EngineCase& a, const EngineCase& b);

// "VARIANT,PRECISION,BATCH"; INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<EngineCase> ParseEngineCase(const std::string& text);

struct EngineFigure {
  EngineCase engine;
  bool tuned = false;  // By a fold table.
  // With as many callers at a time as the model has slots.
  double images_per_second = 0;
  kernels::Quantiles ms;  // Of a batch of one caller, from pixels to results.
  kernels::Quantiles
      device_ms;  // Of the same calls: the GPU's own time of the network.
  int padded_images = 0;
  double mib = 0;          // Device memory in use then.
  std::string note;        // Why there is no figure: "OOM", or an error.
  std::string uncaptured;  // Why a graph could not be recorded.
};

// One line, without its end.
std::string Json(const EngineFigure& figure, const Setting& setting);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
