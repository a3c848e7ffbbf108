#ifndef SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_
#define SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba {

// VisionModel::Load on options.gpus, of which there is one at least, with a
// valid `config`. INVALID_ARGUMENT in a build without CUDA.
absl::StatusOr<std::unique_ptr<VisionModel>> MakeDeviceVisionModel(
    const ModelConfig& config, StateDict& weights, const ModelOptions& options);

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_ENGINE_DEVICE_VISION_MODEL_H_
