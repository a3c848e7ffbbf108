#ifndef SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_
#define SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_

#include <cstdint>
#include <vector>

#include "model/vision_model.h"

namespace sfmamba::engine {

// Black pictures to warm a model up with: of a classifier's size, or of a dense
// model's short side in the ratio 4:3, which is a common one.
class WarmUpInput {
 public:
  explicit WarmUpInput(const model::ModelConfig& config);
  WarmUpInput(const WarmUpInput&) = delete;
  WarmUpInput& operator=(const WarmUpInput&) = delete;

  // Valid while this lives.
  std::vector<model::ModelInput> Batch(int images) const {
    return std::vector<model::ModelInput>(images, input_);
  }

 private:
  model::ModelInput input_;
  std::vector<uint8_t> pixels_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_
