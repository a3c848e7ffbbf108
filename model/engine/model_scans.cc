#include "model/engine/model_scans.h"

namespace sfmamba {
namespace {

ScanShape::Type TypeOf(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return ScanShape::kFloat;
    case Precision::kFloat16:
      return ScanShape::kFloat16;
    case Precision::kBFloat16:
      break;
  }
  return ScanShape::kBFloat16;
}

int CeilDivide(int a, int b) { return (a + b - 1) / b; }

// Of one image: `sequences` is the number of its windows.
ScanShape StageShape(const ModelConfig& config, int stage) {
  const BackboneConfig& backbone = config.backbone;
  const bool ratio = config.resize == Resize::kKeepRatio;
  const int stride = 4 << stage;
  const int height = CeilDivide(
      config.Padded(ratio ? config.short_side : config.image_size), stride);
  const int width = CeilDivide(
      config.Padded(ratio ? config.long_side : config.image_size), stride);
  const int window = backbone.windows[stage - 2];
  ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = backbone.width(stage) / 2;
  shape.states = 8;
  if (backbone.window_mode == WindowMode::kFull) {
    shape.sequences = 1;
    shape.length = height * width;
  } else {
    shape.sequences = CeilDivide(height, window) * CeilDivide(width, window);
    shape.length = window * window;
  }
  if (backbone.tokens != Tokens::kNone) shape.length += 2;
  return shape;
}

ScanShape VimShape(const ModelConfig& config) {
  constexpr int kPatch = 16, kExpand = 2;
  const int side = config.image_size / kPatch;
  ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = kExpand * config.backbone.vim_dim;
  shape.states = 16;
  shape.sequences = 1;
  shape.length = side * side + 1;  // The class token's.
  if (config.backbone.tokens != Tokens::kNone) shape.length += 2;
  return shape;
}

}  // namespace

std::vector<ScanShape> ScanShapes(const ModelConfig& config, int max_batch) {
  std::vector<ScanShape> of_one;
  if (config.backbone.architecture == Architecture::kVim) {
    of_one = {VimShape(config)};
  } else {
    for (const int stage : {2, 3}) {
      if (config.backbone.mamba_blocks(stage) > 0) {
        of_one.push_back(StageShape(config, stage));
      }
    }
  }
  std::vector<ScanShape> shapes;
  for (int batch = 1; batch <= max_batch; batch *= 2) {
    for (ScanShape shape : of_one) {
      shape.sequences *= batch;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

}  // namespace sfmamba
