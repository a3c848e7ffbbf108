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

// Checks the sizes, the stride and the number of bytes, without reading the
// bytes. If one of them is invalid, returns INVALID_ARGUMENT with reason
// INVALID_FIELD or IMAGE_TOO_LARGE. The error names a field relative to
// `pixels`, for example ".width".
absl::Status ValidatePixels(const PixelBuffer& pixels,
                            const ImageLimits& limits);

// Converts a buffer that has passed ValidatePixels() to RGB. Interprets NV12 as
// BT.601 with video range.
RgbImage ToRgb(const PixelBuffer& pixels);

// Checks the shape of the tensor and the number of its bytes. The shape must be
// [3, H, W] with the model's input size. If the model keeps the aspect ratio, H
// and W may have any values within the model's limits. If a check fails,
// returns INVALID_ARGUMENT with reason INVALID_FIELD. The error names a field
// relative to `tensor`, for example ".shape".
absl::Status ValidateTensor(const InputTensor& tensor,
                            const model::ModelConfig& model);

// Converts a tensor that has passed ValidateTensor() to a model input. Elements
// of a floating-point type become `values`. Elements of type kUint8 become
// planar `pixels`. If `pool` is not null, these pixels are stored in memory of
// the pool. If an element is not finite, returns INVALID_ARGUMENT with the
// index of the first such element.
absl::StatusOr<ImageBuffer> ToImageBuffer(const InputTensor& tensor,
                                          PixelPool* pool = nullptr);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PIXELS_H_
