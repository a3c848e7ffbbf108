#ifndef SFMAMBA_MODEL_OPS_IMAGE_BATCH_H_
#define SFMAMBA_MODEL_OPS_IMAGE_BATCH_H_

#include <optional>
#include <utility>

#include "ATen/core/Tensor.h"
#include "model/ops/device_ops.h"

namespace sfmamba::ops {

// The input of a network. It consists of normalised values, or of pixels on a
// device. The first convolution normalises pixels.
class ImageBatch {
 public:
  // `values` is [N, 3, H, W], normalised.
  ImageBatch(at::Tensor values)  // NOLINT: a tensor is a batch.
      : values_(std::move(values)) {}
  // `pixels` are on `device`. `type` is the type that their normalised values
  // shall have.
  ImageBatch(PixelBatch pixels, at::Device device, at::ScalarType type)
      : pixels_(std::move(pixels)), device_(device), type_(type) {}

  // Returns null if the batch was made from values.
  const PixelBatch* pixels() const {
    return pixels_.has_value() ? &*pixels_ : nullptr;
  }
  at::Device device() const { return device_; }
  at::ScalarType type() const { return type_; }

  // Undefined if the batch was made from pixels.
  const at::Tensor& values() const { return values_; }

 private:
  at::Tensor values_;
  std::optional<PixelBatch> pixels_;
  at::Device device_ = at::kCPU;
  at::ScalarType type_ = at::kFloat;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_IMAGE_BATCH_H_
