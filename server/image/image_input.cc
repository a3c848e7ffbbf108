#include "server/image/image_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/steady_clock.h"
#include "server/base/error.h"
#include "server/image/keep_ratio.h"
#include "server/image/pixels.h"

namespace sfmamba::image {
namespace {

PreprocessOptions PreprocessOf(const model::ModelConfig& model,
                               std::optional<ResizeMode> resize) {
  PreprocessOptions options;
  options.size = model.image_size;
  options.resize_size = model.resize_size();
  options.mode = resize.value_or(model.resize == model::Resize::kStretch
                                     ? ResizeMode::kStretch
                                     : ResizeMode::kCenterCrop);
  return options;
}

// The side that a picture may be decoded down to, as less would have to be
// enlarged after the crop; 0: full size.
int MinSide(const ImageSource& image, const model::ModelConfig& model) {
  if (model.resize == model::Resize::kKeepRatio) return 0;
  const int resize_size = model.resize_size();
  if (!image.crop.has_value()) return resize_size;
  const float part = std::min(image.crop->x_max - image.crop->x_min,
                              image.crop->y_max - image.crop->y_min);
  return std::min(std::ceil(resize_size / part), 65535.f);
}

absl::StatusOr<RgbImage> Decode(const ImageSource& image,
                                const ImageLimits& limits, int min_side) {
  const DecodeWatch watch(limits.max_decode_time);
  if (image.pixels() != nullptr) {
    absl::StatusOr<RgbImage> rgb = ToRgb(*image.pixels());
    if (watch.Expired()) {
      return server::InField(".pixels", DecodedTooSlowly(watch));
    }
    return rgb;
  }
  absl::StatusOr<RgbImage> rgb = image::DecodeImage(
      image.encoded()->bytes, limits, image.apply_orientation, min_side, watch);
  if (!rgb.ok()) return server::AtField(".encoded", rgb.status());
  return rgb;
}

// The picture, cropped, as the model takes it.
ImageBuffer ToInput(RgbImage picture, const model::ModelConfig& model,
                    std::optional<ResizeMode> resize) {
  ImageBuffer input;
  const PictureSize original = {picture.height, picture.width};
  if (model.resize == model::Resize::kKeepRatio) {
    RgbImage resized = ResizeBilinear(
        std::move(picture),
        KeepRatioSize(original, model.short_side, model.long_side));
    input.height = resized.height;
    input.width = resized.width;
    input.pixels = std::move(resized.data);
  } else {
    input = Preprocess(picture, PreprocessOf(model, resize));
  }
  input.original_height = original.height;
  input.original_width = original.width;
  return input;
}

absl::StatusOr<PreparedInput> FromTensor(const InputTensor& tensor) {
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<ImageBuffer> image = ToImageBuffer(tensor);
  if (!image.ok()) return server::InField(".tensor", image.status());
  PreparedInput input;
  input.frame.picture = {image->height, image->width};
  input.image = *std::move(image);
  input.image.original_height = input.image.height;
  input.image.original_width = input.image.width;
  input.decode = base::SteadyNow() - start;
  return input;
}

}  // namespace

PixelRect CropOf(const ImageSource& image, const PictureSize& picture) {
  return ToPixels(image.crop.value_or(CropRect()), picture);
}

absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits) {
  if (image.tensor() != nullptr) return FromTensor(*image.tensor());
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<RgbImage> rgb = Decode(image, limits, MinSide(image, model));
  if (!rgb.ok()) return rgb.status();
  const absl::Time decoded = base::SteadyNow();
  PreparedInput input;
  input.decode = decoded - start;
  input.frame.picture = {rgb->height, rgb->width};
  const PixelRect crop = CropOf(image, input.frame.picture);
  input.frame.left = crop.left;
  input.frame.top = crop.top;
  if (image.crop.has_value()) *rgb = Crop(*rgb, crop);
  input.image = ToInput(*std::move(rgb), model, resize);
  input.preprocess = base::SteadyNow() - decoded;
  return input;
}

}  // namespace sfmamba::image
