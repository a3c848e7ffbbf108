#include "server/kserve/model_tensors.h"

namespace sfmamba::kserve {
namespace {

// Class indices fit into a byte, with 255 left for "ignore".
constexpr int kMaxByteClasses = 255;

ModelTensor Fp32(absl::string_view name, std::vector<int64_t> dims) {
  return {name, "FP32", inference::TYPE_FP32, std::move(dims)};
}

ModelTensor Int32(absl::string_view name, std::vector<int64_t> dims) {
  return {name, "INT32", inference::TYPE_INT32, std::move(dims)};
}

}  // namespace

ModelTensor InputOf(const model::ModelConfig& config) {
  const bool any_size = config.resize == model::Resize::kKeepRatio;
  const int64_t side = any_size ? -1 : config.image_size;
  return Fp32(kInputName, {3, side, side});
}

ModelTensor EncodedInput() {
  return {kInputName, "BYTES", inference::TYPE_STRING, {1}};
}

std::vector<ModelTensor> OutputsOf(const model::ModelConfig& config) {
  switch (config.task) {
    case model::VisionTask::kClassification:
      return {Fp32(kLogits, {config.num_classes}),
              Fp32(kEmbedding, {config.embedding_width()})};
    case model::VisionTask::kDetection: {
      const int64_t most = config.detector.max_detections;
      return {Int32(kNumDetections, {1}), Fp32(kBoxes, {most, 4}),
              Fp32(kScores, {most}), Int32(kClasses, {most})};
    }
    case model::VisionTask::kSegmentation:
      if (config.num_classes <= kMaxByteClasses) {
        return {{kClassMap, "UINT8", inference::TYPE_UINT8, {-1, -1}}};
      }
      return {Int32(kClassMap, {-1, -1})};
  }
  return {};
}

}  // namespace sfmamba::kserve
