#ifndef SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
#define SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_

#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "model/ops/device_ops.h"

namespace sfmamba::layers {

// Images as a network takes them: normalised values, or pixels on a device,
// which a first convolution normalises on its way.
class ImageBatch {
 public:
  // values [N, 3, H, W], normalised.
  ImageBatch(at::Tensor values)  // NOLINT: a tensor is a batch.
      : values_(std::move(values)) {}
  // Pixels on `device`, whose values are to be of `type`.
  ImageBatch(ops::PixelBatch pixels, at::Device device, at::ScalarType type)
      : pixels_(std::move(pixels)), device_(device), type_(type) {}

  // Null where there are values.
  const ops::PixelBatch* pixels() const {
    return pixels_.has_value() ? &*pixels_ : nullptr;
  }

  // [N, 3, H, W], normalised; 0 beyond an image.
  at::Tensor Values() const;

 private:
  at::Tensor values_;
  std::optional<ops::PixelBatch> pixels_;
  at::Device device_ = at::kCPU;
  at::ScalarType type_ = at::kFloat;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
