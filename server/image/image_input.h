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

// The position of a model input in the picture.
struct PictureFrame {
  PictureSize picture;    // The size of the decoded and oriented picture.
  int left = 0, top = 0;  // The crop's top left corner, in picture pixels.
  // The size of the crop, or of the picture if there is no crop. This is the
  // full size, even if the picture was decoded to a smaller size.
  PictureSize seen;
  CropRect input;          // The model input shows this part of `seen`.
  PictureSize input_size;  // The size of the model input.
};

struct PreparedInput {
  ImageBuffer image;
  PictureFrame frame;
  absl::Duration decode;
  absl::Duration preprocess;  // This time is zero for a tensor.
};

// A picture that is decoded once to create several inputs.
struct DecodedPicture {
  RgbImage rgb;    // The oriented picture, of full size.
  PixelRect seen;  // The crop, or the whole picture.

  PictureFrame frame() const {
    return {{rgb.height, rgb.width}, seen.left, seen.top};
  }
};

// Returns the image's crop in pixels of the oriented picture, which has the
// size `picture`. Returns the whole picture if the image has no crop.
PixelRect CropOf(const ImageSource& image, const PictureSize& picture);

// Returns the peak memory in bytes of MakeInput() for an encoded image with
// this header. Includes the memory of the result.
int64_t InputMemory(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model);
// Returns the peak memory in bytes of MakeInput() for a pixel buffer of size
// `pixels`. Includes the memory of the result.
int64_t InputMemory(const ImageSource& image, const PictureSize& pixels,
                    const model::ModelConfig& model);

// Creates the input of `model` from an image of a request. The image must have
// passed ValidateImage(). An encoded image or a pixel buffer is decoded,
// cropped and resized. A region of a decoded picture is only resized. A tensor
// already has the size of an input. Its elements are copied, and 16-bit
// elements are converted to 32-bit floats.
//
// If `resize` is set, it replaces the resize mode of the model. For a model
// that keeps the aspect ratio, `resize` is ignored and the image is decoded at
// full size.
//
// Returns INVALID_ARGUMENT if the image cannot be decoded, if a tensor contains
// a NaN or an infinity, or if decoding and resizing exceed
// limits.max_decode_time. The error names a field relative to the image, for
// example ".encoded". `wanted` is called every few milliseconds. If `wanted`
// returns false, MakeInput() returns CANCELLED.
//
// If `pool` is not null, the pixels of a kUint8 tensor are stored in memory of
// the pool. If `kept` is not null, the picture is decoded at full size and then
// moved to `kept`. `kept` must be null if the image is a tensor or a region of
// a picture.
absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted = nullptr,
                                        PixelPool* pool = nullptr,
                                        RgbImage* kept = nullptr);

// Decodes an encoded image or a pixel buffer. A tensor or a region is not
// allowed. Returns the same errors as MakeInput(). `watch` contains the time
// limit. If the picture is a JPEG that needs no rotation, `decoded` is called
// repeatedly with the number of rows decoded so far.
absl::StatusOr<DecodedPicture> DecodePicture(
    const ImageSource& image, const ImageLimits& limits,
    const DecodeWatch& watch,
    RowsDecoded decoded = [](const RgbImage&, int) {});

// Returns the peak memory in bytes of DecodePicture(). Includes the memory of
// the result. The image must have passed ValidateImage().
absl::StatusOr<int64_t> PictureMemory(const ImageSource& image,
                                      const ImageLimits& limits);

// Converts the pixels of `picture` inside `part` to the input of `model`. The
// result is the same as if the client had sent only this part as a picture.
// Pixels outside the part are not read and need not be decoded yet. If `watch`
// has expired, converts its status with DecodeError() and returns the error.
absl::StatusOr<ImageBuffer> MakeInput(const RgbImage& picture,
                                      const PixelRect& part,
                                      const model::ModelConfig& model,
                                      std::optional<ResizeMode> resize,
                                      const DecodeWatch& watch);

// Copies a part of a model input. The part must lie inside the input.
ImageBuffer CropInput(const ImageBuffer& input, const PixelRect& part);

// Returns the peak memory in bytes of MakeInput() for a region of this size.
// Includes the memory of the result, but not the memory of the picture.
int64_t RegionMemory(const PictureSize& region,
                     const model::ModelConfig& model);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
