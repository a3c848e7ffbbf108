#ifndef SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_
#define SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::engine {

// Makes a model like VisionModel::Load(), but with weights from any source.
// `config` must be valid.
absl::StatusOr<std::unique_ptr<model::VisionModel>> MakeVisionModel(
    const model::ModelConfig& config, weights::StateDict& weights,
    const model::ModelOptions& options);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_MAKE_VISION_MODEL_H_
