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
#include "server/image/pixel_pool.h"

namespace sfmamba::image {

// Where the model's input comes from.
struct PictureFrame {
  PictureSize picture;    // The oriented picture, as it was decoded.
  int left = 0, top = 0;  // The request's crop, in pixels of the picture.
  // The picture's own size, or its crop's, whatever size it was decoded at.
  PictureSize seen;
  CropRect input;          // The part of it that is the input; see SeenPart().
  PictureSize input_size;  // Pixels of the input.
};

struct PreparedInput {
  ImageBuffer image;
  PictureFrame frame;
  absl::Duration decode;
  absl::Duration preprocess;  // Zero for a tensor.
};

// A picture decoded once, of which several inputs are made.
struct DecodedPicture {
  RgbImage rgb;    // The oriented picture, of full size.
  PixelRect seen;  // The image's crop in it, or all of it.

  PictureFrame frame() const {
    return {{rgb.height, rgb.width}, seen.left, seen.top};
  }
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
// milliseconds of both; CANCELLED once it says no. The pixels of a tensor are
// put into memory of `pool` if it is not null. A picture, not a region of one,
// is decoded at full size and moved to `kept` if that is not null.
absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted = nullptr,
                                        PixelPool* pool = nullptr,
                                        RgbImage* kept = nullptr);

// Decodes an encoded image or a buffer of pixels, not a tensor. Errors and the
// time limit, which `watch` holds, are those of MakeInput(). `decoded` is told
// of the rows of a JPEG that need not be turned.
absl::StatusOr<DecodedPicture> DecodePicture(
    const ImageSource& image, const ImageLimits& limits,
    const DecodeWatch& watch,
    RowsDecoded decoded = [](const RgbImage&, int) {});

// Returns the most bytes that DecodePicture() has allocated at a time, its
// result included. The image must have passed ValidateImage.
absl::StatusOr<int64_t> PictureMemory(const ImageSource& image,
                                      const ImageLimits& limits);

// Turns the part of `picture` inside `part`, of which nothing else is read,
// into the input that `model` takes: the same as if the part were sent as a
// picture. The DecodeError() of `watch` if it expires.
absl::StatusOr<ImageBuffer> MakeInput(const RgbImage& picture,
                                      const PixelRect& part,
                                      const model::ModelConfig& model,
                                      std::optional<ResizeMode> resize,
                                      const DecodeWatch& watch);

// Returns a copy of a part of an input, which is inside of it.
ImageBuffer CropInput(const ImageBuffer& input, const PixelRect& part);

// Returns the most bytes that MakeInput() of a region of a size has allocated
// at a time, beside the picture and with its result.
int64_t RegionMemory(const PictureSize& region,
                     const model::ModelConfig& model);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
