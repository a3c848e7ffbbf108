#ifndef SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
#define SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_

#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "model/ops/device_ops.h"

namespace sfmamba::layers {

// A network's input: normalised values, or pixels on a device, which the first
// convolution normalises.
class ImageBatch {
 public:
  // `values` is [N, 3, H, W], normalised.
  ImageBatch(at::Tensor values)  // NOLINT: a tensor is a batch.
      : values_(std::move(values)) {}
  // `pixels` are on `device`. Values() are of `type`.
  ImageBatch(ops::PixelBatch pixels, at::Device device, at::ScalarType type)
      : pixels_(std::move(pixels)), device_(device), type_(type) {}

  // Returns null if the batch was made from values.
  const ops::PixelBatch* pixels() const {
    return pixels_.has_value() ? &*pixels_ : nullptr;
  }

  // Returns the normalised values [N, 3, H, W], which are 0 in the padding.
  at::Tensor Values() const;

 private:
  at::Tensor values_;
  std::optional<ops::PixelBatch> pixels_;
  at::Device device_ = at::kCPU;
  at::ScalarType type_ = at::kFloat;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_IMAGE_BATCH_H_
