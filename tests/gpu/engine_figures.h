#ifndef SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
#define SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_

#include <string>
#include <vector>

#include "kernels/quantiles.h"
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
  const char* variant;
  Precision precision = Precision::kBFloat16;
  int batch = 1;
  int side = 224;
  bool club = false;
  int fold_rows = 0;

  // What the case is loaded as.
  ModelConfig Config() const;
  ModelOptions Options() const;
};

std::vector<EngineCase> EngineCases();

// Images per second that the paper gives for the case, on an A100 in mixed
// precision; 0: none.
double PaperImagesPerSecond(const EngineCase& engine);

struct EngineFigure {
  EngineCase engine;
  // With as many callers at a time as the model has slots.
  double images_per_second = 0;
  Quantiles ms;      // Of a batch of one caller, from pixels to results.
  double mib = 0;    // Device memory that the process then holds.
  std::string note;  // Why there is no figure: "OOM", or an error.
};

// One line, without its end.
std::string Json(const EngineFigure& figure, const Setting& setting);

// Tables for people, beside the paper's figures.
std::string Markdown(const std::vector<EngineFigure>& figures);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_ENGINE_FIGURES_H_
