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

// The position of a model input in its picture.
struct PictureFrame {
  PictureSize picture;    // The oriented picture as decoded.
  int left = 0, top = 0;  // The request's crop, in pixels of the picture.
  // The full size of the picture or its crop, even if it was decoded smaller.
  PictureSize seen;
  CropRect input;          // The part of `seen` in the input; see SeenPart().
  PictureSize input_size;  // Pixels of the input.
};

struct PreparedInput {
  ImageBuffer image;
  PictureFrame frame;
  absl::Duration decode;
  absl::Duration preprocess;  // Zero for a tensor.
};

// A picture that is decoded once to make several inputs.
struct DecodedPicture {
  RgbImage rgb;    // The oriented picture, of full size.
  PixelRect seen;  // The image's crop, or the whole picture.

  PictureFrame frame() const {
    return {{rgb.height, rgb.width}, seen.left, seen.top};
  }
};

// Returns the image's crop in pixels of its oriented picture, whose size is
// `picture`. Without a crop, returns the whole picture.
PixelRect CropOf(const ImageSource& image, const PictureSize& picture);

// Returns the peak memory of MakeInput() in bytes, including its result, for an
// encoded image with this header.
int64_t InputMemory(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model);
// Returns the peak memory of MakeInput() in bytes, including its result, for a
// pixel buffer of size `pixels`.
int64_t InputMemory(const ImageSource& image, const PictureSize& pixels,
                    const model::ModelConfig& model);

// Decodes, crops and resizes an image to the input that `model` takes. A tensor
// is only converted. `resize` overrides the model's resize mode. Models that
// keep the ratio ignore it and decode at full size. The image must have passed
// ValidateImage().
//
// INVALID_ARGUMENT with a field relative to the image (".encoded") if its bytes
// cannot be decoded, or if decoding and resizing exceed limits.max_decode_time.
// `wanted` is called every few milliseconds. CANCELLED once it returns false.
//
// The pixels of a tensor use memory of `pool`, unless it is null. If `kept` is
// not null, a picture is decoded at full size and moved to it. This excludes
// regions of a picture.
absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted = nullptr,
                                        PixelPool* pool = nullptr,
                                        RgbImage* kept = nullptr);

// Decodes an encoded image or a pixel buffer, but no tensor. Errors are the
// same as for MakeInput(). `watch` has the time limit. `decoded` is called as
// rows of a JPEG are decoded, if the picture need not be rotated.
absl::StatusOr<DecodedPicture> DecodePicture(
    const ImageSource& image, const ImageLimits& limits,
    const DecodeWatch& watch,
    RowsDecoded decoded = [](const RgbImage&, int) {});

// Returns the peak memory of DecodePicture() in bytes, including its result.
// The image must have passed ValidateImage().
absl::StatusOr<int64_t> PictureMemory(const ImageSource& image,
                                      const ImageLimits& limits);

// Turns the pixels of `picture` inside `part` into the input that `model`
// takes, as if the part had been sent as a picture. Does not read other pixels.
// Returns the DecodeError() of `watch` if it expires.
absl::StatusOr<ImageBuffer> MakeInput(const RgbImage& picture,
                                      const PixelRect& part,
                                      const model::ModelConfig& model,
                                      std::optional<ResizeMode> resize,
                                      const DecodeWatch& watch);

// Returns a copy of a part of an input. The part must lie inside the input.
ImageBuffer CropInput(const ImageBuffer& input, const PixelRect& part);

// Returns the peak memory of MakeInput() in bytes for a region of this size.
// Includes the result, but not the picture.
int64_t RegionMemory(const PictureSize& region,
                     const model::ModelConfig& model);

}  // namespace sfmamba::image

#endif  // SFMAMBA_SERVER_IMAGE_IMAGE_INPUT_H_
