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

// Checks sizes, stride and the length of the data, in 64 bits, without touching
// the data. INVALID_ARGUMENT with reason INVALID_FIELD or IMAGE_TOO_LARGE and a
// field of `pixels` (".width").
absl::Status ValidatePixels(const PixelBuffer& pixels,
                            const ImageLimits& limits);

// RGB of a valid buffer. NV12 is BT.601 of video range.
RgbImage ToRgb(const PixelBuffer& pixels);

// Checks type, shape and the length of the data: [3, H, W] with the model's
// input size or, if it keeps the ratio, any within its limits. INVALID_ARGUMENT
// with reason INVALID_FIELD and a field of `tensor` (".shape").
absl::Status ValidateTensor(const InputTensor& tensor,
                            const model::ModelConfig& model);

// A valid tensor as the model takes it: values of the floating types, planar
// pixels of kUint8, in memory of `pool` if it is not null. Pieces are read
// where they are. INVALID_ARGUMENT naming the first element that is not finite.
absl::StatusOr<ImageBuffer> ToImageBuffer(const InputTensor& tensor,
                                          PixelPool* pool = nullptr);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_PIXELS_H_
