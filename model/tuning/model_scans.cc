#include "model/tuning/model_scans.h"

#include <string>

#include "absl/container/flat_hash_set.h"
#include "model/stage_geometry.h"

namespace sfmamba::tuning {
namespace {

ScanShape::Type TypeOf(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFloat32:
    case model::Precision::kInt8:  // Only on CPUs, which scan in fp32.
      return ScanShape::kFloat;
    case model::Precision::kFloat16:
      return ScanShape::kFloat16;
    case model::Precision::kBFloat16:
      break;
  }
  return ScanShape::kBFloat16;
}

// Returns the shape of the scan of a stage for one image.
ScanShape StageShape(const model::ModelConfig& config, int stage) {
  // If config.resize is kKeepRatio, inputs differ in size. The shape is
  // computed for the largest input in landscape format.
  const bool ratio = config.resize == model::Resize::kKeepRatio;
  const int height = ratio ? config.short_side : config.image_size;
  const int width = ratio ? config.long_side : config.image_size;
  const model::StageWindows windows =
      model::StageGeometry(config.backbone, stage)
          .Windows(model::MapSide(config.Padded(height), stage),
                   model::MapSide(config.Padded(width), stage));
  ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = config.backbone.width(stage) / 2;
  shape.states = 8;
  shape.sequences = static_cast<int>(windows.count);
  shape.length = static_cast<int>(windows.length);
  return shape;
}

ScanShape VimShape(const model::ModelConfig& config) {
  constexpr int kPatch = 16, kExpand = 2;
  const int side = config.image_size / kPatch;
  ScanShape shape;
  shape.type = TypeOf(config.precision);
  shape.channels = kExpand * config.backbone.vim_dim;
  shape.states = 16;
  shape.sequences = 1;
  shape.length = side * side + 1;  // The class token counts, too.
  if (config.backbone.tokens != model::Tokens::kNone) shape.length += 2;
  return shape;
}

}  // namespace

std::vector<ScanShape> ScanShapes(const model::ModelConfig& config,
                                  int max_batch) {
  std::vector<ScanShape> of_one;
  if (config.backbone.architecture == model::Architecture::kVim) {
    of_one = {VimShape(config)};
  } else if (config.backbone.architecture == model::Architecture::kHybrid) {
    for (const int stage : {2, 3}) {
      if (config.backbone.mamba_blocks(stage) > 0) {
        of_one.push_back(StageShape(config, stage));
      }
    }
  }
  std::vector<ScanShape> shapes;
  // The table rounds the number of sequences to a power of two. Batches of 1,
  // 2, 4 and so on images are therefore enough.
  for (int batch = 1; batch <= max_batch; batch *= 2) {
    for (ScanShape shape : of_one) {
      shape.sequences *= batch;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

std::vector<ScanShape> ScanShapes(absl::Span<const model::ModelToTune> models) {
  std::vector<ScanShape> shapes;
  absl::flat_hash_set<std::string> seen;
  for (const model::ModelToTune& model : models) {
    for (const ScanShape& shape : ScanShapes(model.config, model.max_batch)) {
      if (seen.insert(ToString(shape)).second) shapes.push_back(shape);
    }
  }
  return shapes;
}

}  // namespace sfmamba::tuning
