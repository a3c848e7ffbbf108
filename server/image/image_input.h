#ifndef SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
#define SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "server/image/image.h"
#include "server/image/image_buffer.h"
#include "server/image/image_source.h"

namespace sfmamba::image {

// Position of the model's crop within the oriented picture.
struct PictureFrame {
  PictureSize picture;
  int left = 0, top = 0;  // The crop's, in pixels of the picture.
};

struct PreparedInput {
  ImageBuffer image;
  PictureFrame frame;
  absl::Duration decode;
  absl::Duration preprocess;  // Zero for a tensor.
};

// The image's crop in pixels of its oriented picture, which has the size
// `picture`. Without a crop it is the whole picture.
PixelRect CropOf(const ImageSource& image, const PictureSize& picture);

// Returns the most bytes that MakeInput() has allocated at a time for an
// encoded image with this header, its result included.
int64_t InputMemory(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model);
// Returns the most bytes that MakeInput() has allocated at a time for pixels of
// a size.
int64_t InputMemory(const ImageSource& image, const PictureSize& pixels,
                    const model::ModelConfig& model);

// Turns an image into the input that `model` takes: decodes, crops and resizes
// it; a tensor is only converted. `resize` replaces the model's own way of
// resizing; models that keep the ratio ignore it and decode at full size. The
// image must have passed ValidateImage. INVALID_ARGUMENT with a field relative
// to the image (".encoded") if its bytes cannot be decoded, or if decoding and
// resizing take longer than limits.max_decode_time. `wanted` is asked every few
// milliseconds of both; CANCELLED once it says no.
absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted = nullptr);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
