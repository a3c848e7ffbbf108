#ifndef SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_
#define SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba {

// VisionModel::Load with weights from any source and a valid `config`.
absl::StatusOr<std::unique_ptr<VisionModel>> MakeVisionModel(
    const ModelConfig& config, StateDict& weights, const ModelOptions& options);

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_
