#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::engine {

// Makes a model on the GPUs in options.gpus, at least one. `config` must be
// valid. Returns INVALID_ARGUMENT in a build without CUDA.
absl::StatusOr<std::unique_ptr<model::VisionModel>> MakeDeviceVisionModel(
    const model::ModelConfig& config, weights::StateDict& weights,
    const model::ModelOptions& options);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_
