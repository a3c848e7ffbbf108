#include "model/engine/warm_up_input.h"

#include <algorithm>

namespace sfmamba::engine {

WarmUpInput::WarmUpInput(const model::ModelConfig& config) {
  const bool dense = config.task != model::VisionTask::kClassification;
  input_.height = dense ? config.short_side : config.image_size;
  // Most pictures for dense models have the aspect ratio 4:3.
  input_.width = dense ? std::min(config.long_side, config.short_side * 4 / 3)
                       : config.image_size;
  if (config.task == model::VisionTask::kDetection) {
    model::DetectionOptions options;
    options.masks = true;
    input_.options = options;
  }
  pixels_.resize(size_t{3} * input_.height * input_.width);
  input_.pixels = pixels_.data();
  values_.resize(pixels_.size());
}

}  // namespace sfmamba::engine
