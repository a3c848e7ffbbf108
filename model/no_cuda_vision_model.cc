#include "model/cuda_vision_model.h"

namespace sfmamba {

absl::StatusOr<std::unique_ptr<VisionModel>> MakeCudaVisionModel(
    const ModelConfig&, StateDict&, const ModelOptions&) {
  return absl::InvalidArgumentError(
      "GPUs were asked for, but this build has no CUDA: it needs "
      "--config=cuda");
}

}  // namespace sfmamba
