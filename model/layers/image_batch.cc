#include "model/layers/image_batch.h"

#include "ATen/ops/empty.h"

namespace sfmamba::layers {

at::Tensor ImageBatch::Values() const {
  if (!pixels_.has_value()) return values_;
  const at::Tensor x =
      at::empty({static_cast<int64_t>(pixels_->images.size()), 3,
                 pixels_->height, pixels_->width},
                at::TensorOptions(device_).dtype(type_).memory_format(
                    at::MemoryFormat::ChannelsLast));
  ops::DeviceOpsOf(x)->NormalizeImages(*pixels_, x);
  return x;
}

}  // namespace sfmamba::layers
