#ifndef SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_
#define SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/execution_context.h"

namespace sfmamba::engine {

// Images for warming up a model. All pixels are black, or all values are 0. A
// classifier's images have its input size. A dense model's images have its
// short side and the common aspect ratio 4:3.
class WarmUpInput {
 public:
  explicit WarmUpInput(const model::ModelConfig& config);
  WarmUpInput(const WarmUpInput&) = delete;
  WarmUpInput& operator=(const WarmUpInput&) = delete;

  // Both functions return a batch, which is valid as long as this object
  // exists.
  std::vector<model::ModelInput> Batch(int images) const {
    return std::vector<model::ModelInput>(images, input_);
  }
  std::vector<model::ModelInput> BatchOfValues(int images) const {
    model::ModelInput input = input_;
    input.pixels = nullptr;
    input.values = values_.data();
    return std::vector<model::ModelInput>(images, input);
  }

 private:
  model::ModelInput input_;
  std::vector<uint8_t> pixels_;
  std::vector<float> values_;
};

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_WARM_UP_INPUT_H_
