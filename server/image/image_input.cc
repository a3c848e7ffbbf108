#include "server/image/image_input.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/image_decoder.h"
#include "base/steady_clock.h"
#include "server/errors/error.h"
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

// Returns the smallest side that a picture may be decoded to. With a smaller
// one the crop would have to be enlarged. 0: full size.
int MinSide(const ImageSource& image, const model::ModelConfig& model) {
  if (model.resize == model::Resize::kKeepRatio) return 0;
  const int resize_size = model.resize_size();
  if (!image.crop.has_value()) return resize_size;
  const float part = std::min(image.crop->x_max - image.crop->x_min,
                              image.crop->y_max - image.crop->y_min);
  // A tiny crop asks for more than any JPEG's side, and for more than an int.
  return std::min(std::ceil(resize_size / part), 65535.f);
}

// The request's field that holds the picture.
const char* FieldOf(const ImageSource& image) {
  if (image.region() != nullptr) return "";
  return image.pixels() != nullptr ? ".pixels" : ".encoded";
}

absl::StatusOr<RgbImage> Decode(const ImageSource& image,
                                const ImageLimits& limits, int min_side,
                                const DecodeWatch& watch, RowsDecoded decoded) {
  if (image.region() != nullptr) {
    return Crop(*image.region()->picture, image.region()->rect);
  }
  if (image.pixels() != nullptr) {
    absl::StatusOr<RgbImage> rgb = ToRgb(*image.pixels());
    if (watch.Expired()) return DecodedTooSlowly(watch);
    return rgb;
  }
  return image::DecodeImage(image.encoded()->bytes, limits,
                            image.apply_orientation, min_side, watch, decoded);
}

// What was resized from a picture of size `original`, as the model takes it.
ImageBuffer FromResized(RgbImage resized, const PictureSize& original) {
  ImageBuffer input;
  input.height = resized.height;
  input.width = resized.width;
  input.pixels = std::move(resized.data);
  input.original_height = original.height;
  input.original_width = original.width;
  return input;
}

// The picture, cropped, as the model takes it.
absl::StatusOr<ImageBuffer> ToInput(RgbImage picture,
                                    const model::ModelConfig& model,
                                    std::optional<ResizeMode> resize,
                                    const DecodeWatch& watch) {
  const PictureSize original = {picture.height, picture.width};
  if (model.resize == model::Resize::kKeepRatio) {
    const PictureSize size =
        KeepRatioSize(original, model.short_side, model.long_side);
    return FromResized(ResizeBilinear(std::move(picture), size), original);
  }
  absl::StatusOr<ImageBuffer> input =
      Preprocess(picture, PreprocessOf(model, resize), watch);
  if (!input.ok()) return input;
  input->original_height = original.height;
  input->original_width = original.width;
  return input;
}

int64_t RgbBytes(const PictureSize& size) { return 3 * size.pixels(); }

// Bytes of what resizing needs beside pixels: the filters' weights and the rows
// at hand, a few numbers for each row and column, and the heap's own.
constexpr int64_t kPerLine = 96, kTables = 17 << 10;
int64_t InputAndTables(const PictureSize& seen,
                       const model::ModelConfig& model) {
  const int64_t size = model.image_size;
  // Twice the input: the resized window and the padded square exist together.
  return 3 * size * 2 * size +
         kPerLine * (seen.height + seen.width + 2 * size) + kTables;
}

// Whether the picture is resized while it is decoded, so that it is never in
// memory as a whole.
bool IsResizedByRow(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model) {
  return model.resize != model::Resize::kKeepRatio && !image.crop.has_value() &&
         base::ComesInRows(header, image.apply_orientation);
}

// The most that cropping and resizing a decoded picture take, itself included.
int64_t ResizeMemory(const ImageSource& image, const PictureSize& picture,
                     const model::ModelConfig& model) {
  const PixelRect crop = CropOf(image, picture);
  const PictureSize seen = {crop.height, crop.width};
  const int64_t cropping =
      image.crop.has_value() ? RgbBytes(picture) + RgbBytes(seen) + kTables : 0;
  // The picture is freed when its crop exists, before the crop is resized.
  const bool keeps_ratio = model.resize == model::Resize::kKeepRatio;
  return std::max(
      cropping, RegionMemory(seen, model) + (keeps_ratio ? RgbBytes(seen) : 0));
}

absl::StatusOr<PreparedInput> FromRows(const ImageSource& image,
                                       const ImageHeader& header,
                                       const model::ModelConfig& model,
                                       std::optional<ResizeMode> resize,
                                       const DecodeWatch& watch) {
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<RowsInput> rows =
      DecodeAndPreprocess(image.encoded()->bytes, header, MinSide(image, model),
                          PreprocessOf(model, resize), watch);
  if (!rows.ok()) return server::AtField(FieldOf(image), rows.status());
  PreparedInput input;
  input.image = std::move(rows->image);
  input.frame.picture = {input.image.original_height,
                         input.image.original_width};
  input.frame.seen = {header.height, header.width};
  input.frame.input =
      SeenPart(input.frame.picture, PreprocessOf(model, resize));
  input.preprocess = rows->preprocess;
  input.decode = base::SteadyNow() - start - input.preprocess;
  return input;
}

absl::StatusOr<PreparedInput> FromTensor(const InputTensor& tensor,
                                         PixelPool* pool) {
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<ImageBuffer> image = ToImageBuffer(tensor, pool);
  if (!image.ok()) return server::InField(".tensor", image.status());
  PreparedInput input;
  input.frame.picture = input.frame.seen = {image->height, image->width};
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

int64_t RegionMemory(const PictureSize& region,
                     const model::ModelConfig& model) {
  if (model.resize != model::Resize::kKeepRatio) {
    return RgbBytes(region) + InputAndTables(region, model);
  }
  const PictureSize input =
      KeepRatioSize(region, model.short_side, model.long_side);
  return RgbBytes(input) + kPerLine * (input.height + input.width) + kTables;
}

absl::StatusOr<int64_t> PictureMemory(const ImageSource& image,
                                      const ImageLimits& limits) {
  if (image.pixels() != nullptr) {
    return RgbBytes({image.pixels()->height, image.pixels()->width});
  }
  const absl::StatusOr<ImageHeader> header =
      image::ReadImageHeader(image.encoded()->bytes, limits);
  if (!header.ok()) return server::AtField(FieldOf(image), header.status());
  return base::NeedsOf(*header, image.apply_orientation, /*min_side=*/0).bytes;
}

int64_t InputMemory(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model) {
  const base::DecodeNeeds needs =
      base::NeedsOf(header, image.apply_orientation, MinSide(image, model));
  if (IsResizedByRow(image, header, model)) {
    return header.decoder_bytes +
           InputAndTables({needs.height, needs.width}, model);
  }
  return std::max(needs.bytes,
                  ResizeMemory(image, {needs.height, needs.width}, model));
}

int64_t InputMemory(const ImageSource& image, const PictureSize& pixels,
                    const model::ModelConfig& model) {
  return ResizeMemory(image, pixels, model);
}

absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted,
                                        PixelPool* pool) {
  if (image.tensor() != nullptr) return FromTensor(*image.tensor(), pool);
  // A picture in several slices is joined here, once its turn has come.
  if (image.fetch) image.fetch();
  const absl::Time start = base::SteadyNow();
  const DecodeWatch watch(limits.max_decode_time, base::ThreadCpuTime,
                          std::move(wanted));
  PictureSize oriented;
  if (image.encoded() != nullptr) {
    const absl::StatusOr<ImageHeader> header =
        image::ReadImageHeader(image.encoded()->bytes, limits);
    if (!header.ok()) return server::AtField(FieldOf(image), header.status());
    oriented = OrientedSize(*header, image.apply_orientation);
    if (IsResizedByRow(image, *header, model)) {
      return FromRows(image, *header, model, resize, watch);
    }
  }
  absl::StatusOr<RgbImage> rgb = Decode(image, limits, MinSide(image, model),
                                        watch, [](const RgbImage&, int) {});
  if (!rgb.ok()) return server::AtField(FieldOf(image), rgb.status());
  const absl::Time decoded = base::SteadyNow();
  PreparedInput input;
  input.decode = decoded - start;
  input.frame.picture = {rgb->height, rgb->width};
  if (image.encoded() == nullptr) oriented = input.frame.picture;
  const PixelRect crop = CropOf(image, input.frame.picture);
  input.frame.left = crop.left;
  input.frame.top = crop.top;
  if (image.crop.has_value()) *rgb = Crop(*rgb, crop);
  absl::StatusOr<ImageBuffer> buffer =
      ToInput(*std::move(rgb), model, resize, watch);
  if (!buffer.ok()) return server::AtField(FieldOf(image), buffer.status());
  const PixelRect seen = CropOf(image, oriented);
  input.frame.seen = {seen.height, seen.width};
  if (model.resize != model::Resize::kKeepRatio) {
    input.frame.input =
        SeenPart({buffer->original_height, buffer->original_width},
                 PreprocessOf(model, resize));
  }
  input.image = *std::move(buffer);
  input.preprocess = base::SteadyNow() - decoded;
  return input;
}

absl::StatusOr<DecodedPicture> DecodePicture(const ImageSource& image,
                                             const ImageLimits& limits,
                                             const DecodeWatch& watch,
                                             RowsDecoded decoded) {
  if (image.fetch) image.fetch();
  absl::StatusOr<RgbImage> rgb =
      Decode(image, limits, /*min_side=*/0, watch, decoded);
  if (!rgb.ok()) return server::AtField(FieldOf(image), rgb.status());
  const PixelRect seen = CropOf(image, {rgb->height, rgb->width});
  return DecodedPicture{*std::move(rgb), seen};
}

absl::StatusOr<ImageBuffer> MakeInput(const RgbImage& picture,
                                      const PixelRect& part,
                                      const model::ModelConfig& model,
                                      std::optional<ResizeMode> resize,
                                      const DecodeWatch& watch) {
  if (watch.Expired()) return DecodedTooSlowly(watch);
  if (model.resize != model::Resize::kKeepRatio) {
    return ToInput(Crop(picture, part), model, resize, watch);
  }
  const PictureSize size = {part.height, part.width};
  return FromResized(
      ResizeBilinear(picture, part,
                     KeepRatioSize(size, model.short_side, model.long_side)),
      size);
}

ImageBuffer CropInput(const ImageBuffer& input, const PixelRect& part) {
  ImageBuffer result;
  result.height = result.original_height = part.height;
  result.width = result.original_width = part.width;
  result.planar = input.planar;
  // Copies the part's rows of a plane whose pixels have `values` values each.
  const auto copy = [&](const auto* plane, int values, auto* to) {
    for (int y = 0; y < part.height; ++y) {
      const auto* const row =
          plane + (int64_t{part.top + y} * input.width + part.left) * values;
      to->insert(to->end(), row, row + int64_t{part.width} * values);
    }
  };
  std::vector<uint8_t> pixels;
  if (!input.pixels.empty() && !input.planar) {
    copy(input.pixels.data(), 3, &pixels);
  }
  for (int c = 0; c < 3; ++c) {
    const int64_t plane = int64_t{c} * input.height * input.width;
    if (input.planar) copy(input.pixels.data() + plane, 1, &pixels);
    if (!input.values.empty()) {
      copy(input.values.data() + plane, 1, &result.values);
    }
  }
  result.pixels = std::move(pixels);
  return result;
}

}  // namespace sfmamba::image
