#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/image/image_buffer.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::image {

// Where that which the model sees, the crop, lies in the oriented picture.
struct PictureFrame {
  PictureSize picture;
  int left = 0, top = 0;  // Of the crop, in pixels of the picture.
};

struct PreparedInput {
  ImageBuffer image;
  PictureFrame frame;
  absl::Duration decode;
  absl::Duration preprocess;  // Zero of a tensor.
};

// The crop of an image of a request that is `picture` large; all of it if the
// image names none.
PixelRect CropOf(const v1::Image& image, const PictureSize& picture);

// The image of a request as `model` takes it: decoded, cropped, resized; a
// tensor as it is. For a model that keeps the ratio the picture is decoded at
// its full size, and `resize` plays no part. The image must be valid
// (ValidateImage). INVALID_ARGUMENT with a field relative to the image
// (".encoded") if its bytes cannot be decoded.
absl::StatusOr<PreparedInput> MakeInput(const v1::Image& image,
                                        const model::ModelConfig& model,
                                        v1::RequestOptions::Resize resize,
                                        const ImageLimits& limits);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
