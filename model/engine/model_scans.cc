#include "model/engine/model_scans.h"

namespace sfmamba::engine {
namespace {

tuning::ScanShape::Type TypeOf(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFloat32:
      return tuning::ScanShape::kFloat;
    case model::Precision::kFloat16:
      return tuning::ScanShape::kFloat16;
    case model::Precision::kBFloat16:
      break;
  }
  return tuning::ScanShape::kBFloat16;
}

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

// Returns the shape of a stage's scan for one image, whose windows are the
// sequences.
tuning::ScanShape StageShape(const model::ModelConfig& config, int stage) {
  const model::BackboneConfig& backbone = config.backbone;
  const bool ratio = config.resize == model::Resize::kKeepRatio;
  const int stride = 4 << stage;
  const int height = CeilDivide(
      config.Padded(ratio ? config.short_side : config.image_size), stride);
  const int width = CeilDivide(
      config.Padded(ratio ? config.long_side : config.image_size), stride);
  const int window = backbone.windows[stage - 2];
  tuning::ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = backbone.width(stage) / 2;
  shape.states = 8;
  if (backbone.window_mode == model::WindowMode::kFull) {
    shape.sequences = 1;
    shape.length = height * width;
  } else {
    shape.sequences = CeilDivide(height, window) * CeilDivide(width, window);
    shape.length = window * window;
  }
  if (backbone.tokens != model::Tokens::kNone) shape.length += 2;
  return shape;
}

tuning::ScanShape VimShape(const model::ModelConfig& config) {
  constexpr int kPatch = 16, kExpand = 2;
  const int side = config.image_size / kPatch;
  tuning::ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = kExpand * config.backbone.vim_dim;
  shape.states = 16;
  shape.sequences = 1;
  shape.length = side * side + 1;  // With the class token.
  if (config.backbone.tokens != model::Tokens::kNone) shape.length += 2;
  return shape;
}

}  // namespace

std::vector<tuning::ScanShape> ScanShapes(const model::ModelConfig& config,
                                          int max_batch) {
  std::vector<tuning::ScanShape> of_one;
  if (config.backbone.architecture == model::Architecture::kVim) {
    of_one = {VimShape(config)};
  } else {
    for (const int stage : {2, 3}) {
      if (config.backbone.mamba_blocks(stage) > 0) {
        of_one.push_back(StageShape(config, stage));
      }
    }
  }
  std::vector<tuning::ScanShape> shapes;
  for (int batch = 1; batch <= max_batch; batch *= 2) {
    for (tuning::ScanShape shape : of_one) {
      shape.sequences *= batch;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

}  // namespace sfmamba::engine
