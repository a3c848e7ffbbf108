#include "server/image_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/error.h"
#include "server/pixels.h"

namespace sfmamba {
namespace {

PreprocessOptions PreprocessOf(const ModelConfig& model,
                               v1::RequestOptions::Resize resize) {
  PreprocessOptions options;
  options.size = model.image_size;
  options.resize_size = model.resize_size();
  switch (resize) {
    case v1::RequestOptions::STRETCH:
      options.mode = ResizeMode::kStretch;
      break;
    case v1::RequestOptions::LETTERBOX:
      options.mode = ResizeMode::kLetterbox;
      break;
    case v1::RequestOptions::CENTER_CROP:
      options.mode = ResizeMode::kCenterCrop;
      break;
    default:
      options.mode = model.resize == Resize::kStretch ? ResizeMode::kStretch
                                                      : ResizeMode::kCenterCrop;
  }
  return options;
}

// The side that a picture may be decoded down to: less would have to be
// enlarged after the crop.
int MinSide(const v1::Image& image, int resize_size) {
  if (!image.has_crop()) return resize_size;
  const float part = std::min(image.crop().x_max() - image.crop().x_min(),
                              image.crop().y_max() - image.crop().y_min());
  return std::min(std::ceil(resize_size / part), 65535.f);
}

absl::StatusOr<RgbImage> Decode(const v1::Image& image,
                                const ImageLimits& limits, int min_side) {
  if (image.has_pixels()) return ToRgb(image.pixels());
  absl::StatusOr<RgbImage> rgb =
      DecodeImage(image.encoded(), limits,
                  image.orientation() != v1::Image::IGNORE, min_side);
  if (rgb.ok()) return rgb;
  ErrorDetail detail = GetErrorDetail(rgb.status());
  detail.field = ".encoded";
  return MakeError(rgb.status().code(), rgb.status().message(),
                   std::move(detail));
}

}  // namespace

absl::StatusOr<ImageBuffer> MakeInput(const v1::Image& image,
                                      const ModelConfig& model,
                                      v1::RequestOptions::Resize resize,
                                      const ImageLimits& limits,
                                      InputTimes* times) {
  const absl::Time start = SteadyNow();
  if (image.has_tensor()) {
    absl::StatusOr<ImageBuffer> input = ToImageBuffer(image.tensor());
    times->decode = SteadyNow() - start;
    if (!input.ok()) return InField(".tensor", input.status());
    return input;
  }
  const PreprocessOptions options = PreprocessOf(model, resize);
  absl::StatusOr<RgbImage> rgb =
      Decode(image, limits, MinSide(image, options.resize_size));
  const absl::Time decoded = SteadyNow();
  times->decode = decoded - start;
  if (!rgb.ok()) return rgb.status();
  if (image.has_crop()) {
    const v1::NormalizedRect& crop = image.crop();
    *rgb = Crop(*rgb, {crop.x_min(), crop.y_min(), crop.x_max(), crop.y_max()});
  }
  ImageBuffer input = Preprocess(*rgb, options);
  times->preprocess = SteadyNow() - decoded;
  return input;
}

}  // namespace sfmamba
