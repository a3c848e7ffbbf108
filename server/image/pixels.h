#ifndef SFMAMBA_SERVER_IMAGE_PIXELS_H_
#define SFMAMBA_SERVER_IMAGE_PIXELS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/image/image_buffer.h"
#include "server/image/image_source.h"
#include "server/image/pixel_pool.h"

namespace sfmamba::image {

// Checks sizes, stride and data length in 64 bits, without reading the data.
// Returns INVALID_ARGUMENT with reason INVALID_FIELD or IMAGE_TOO_LARGE, and a
// field of `pixels` (".width").
absl::Status ValidatePixels(const PixelBuffer& pixels,
                            const ImageLimits& limits);

// Converts a valid buffer to RGB. NV12 is interpreted as BT.601 with video
// range.
RgbImage ToRgb(const PixelBuffer& pixels);

// Checks type, shape and data length. The shape must be [3, H, W] with the
// model's input size. If the model keeps the ratio, any size within the model's
// limits is allowed. Returns INVALID_ARGUMENT with reason INVALID_FIELD and a
// field of `tensor` (".shape").
absl::Status ValidateTensor(const InputTensor& tensor,
                            const model::ModelConfig& model);

// Converts a valid tensor to a model input. Floating-point types become
// `values`. kUint8 becomes planar `pixels`, in memory of `pool` unless `pool`
// is null. Returns INVALID_ARGUMENT with the first element that is not finite.
absl::StatusOr<ImageBuffer> ToImageBuffer(const InputTensor& tensor,
                                          PixelPool* pool = nullptr);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PIXELS_H_
