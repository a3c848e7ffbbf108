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

bool KeepsRatio(const model::ModelConfig& model) {
  return model.resize == model::Resize::kKeepRatio;
}

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

// The decoder may reduce the size of a JPEG while it decodes the JPEG. Returns
// the minimum length in pixels that both sides of the reduced picture must
// have. Returns 0 if the picture must be decoded at full size. If a side were
// shorter, the part for the model (the crop or the whole picture) could be
// smaller than resize_size. The part would then have to be enlarged.
int MinSide(const ImageSource& image, const model::ModelConfig& model) {
  if (image.full_size || KeepsRatio(model)) return 0;
  const int resize_size = model.resize_size();
  if (!image.crop.has_value()) return resize_size;
  const float part = std::min(image.crop->x_max - image.crop->x_min,
                              image.crop->y_max - image.crop->y_min);
  // 65535 is the largest side of a JPEG. Without this limit, a tiny crop could
  // give a result outside the range of an int.
  return std::min(std::ceil(resize_size / part), 65535.f);
}

// Returns the name of the request's field that contains the picture.
const char* FieldOf(const ImageSource& image) {
  return image.pixels() != nullptr ? ".pixels" : ".encoded";
}

// Converts an error of the decoder or of the watch to the error that the client
// gets.
absl::Status ErrorOf(const ImageSource& image, const absl::Status& status) {
  return server::AtField(FieldOf(image), DecodeError(status));
}

absl::StatusOr<RgbImage> Decode(const ImageSource& image,
                                const ImageLimits& limits, int min_side,
                                const DecodeWatch& watch, RowsDecoded decoded) {
  if (image.pixels() != nullptr) {
    absl::StatusOr<RgbImage> rgb = ToRgb(*image.pixels());
    if (watch.Expired()) return watch.status();
    return rgb;
  }
  return base::DecodeImage(image.encoded()->bytes, limits,
                           image.apply_orientation, min_side, watch, decoded);
}

// Converts `part` of the picture to the model's input. If `own` is not null, it
// points to the picture, and `part` is the whole picture. The picture's pixels
// may then be moved out of `own`.
absl::StatusOr<ImageBuffer> ToInput(const RgbImage& picture,
                                    const PixelRect& part,
                                    const model::ModelConfig& model,
                                    std::optional<ResizeMode> resize,
                                    const DecodeWatch& watch, RgbImage* own) {
  if (!KeepsRatio(model)) {
    return Preprocess(picture, PreprocessOf(model, resize), watch, part);
  }
  const PictureSize size = KeepRatioSize({part.height, part.width},
                                         model.short_side, model.long_side);
  ImageBuffer input;
  input.height = size.height;
  input.width = size.width;
  input.original_height = part.height;
  input.original_width = part.width;
  RgbImage resized = own != nullptr ? ResizeBilinear(std::move(*own), size)
                                    : ResizeBilinear(picture, part, size);
  input.pixels = std::move(resized.data);
  return input;
}

int64_t RgbBytes(const PictureSize& size) { return 3 * size.pixels(); }

// Resizing needs memory in addition to pixels, for the weights of the filters,
// buffered rows and heap overhead. This memory is kPerLine bytes for each row
// and each column, plus kTables bytes.
constexpr int64_t kPerLine = 96, kTables = 17 << 10;
int64_t InputAndTables(const PictureSize& seen,
                       const model::ModelConfig& model) {
  const int64_t size = model.image_size;
  // The input is counted twice, once as the resized window and once as the
  // padded square.
  return 3 * size * 2 * size +
         kPerLine * (seen.height + seen.width + 2 * size) + kTables;
}

// Returns true if the picture is resized while it is decoded. The whole picture
// is then never in memory.
bool IsResizedByRow(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model) {
  return !KeepsRatio(model) && !image.crop.has_value() &&
         base::ComesInRows(header, image.apply_orientation);
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
  input.frame.input_size = {input.image.height, input.image.width};
  input.frame.input =
      SeenPart(input.frame.picture, PreprocessOf(model, resize));
  input.preprocess = rows->preprocess;
  input.decode = base::SteadyNow() - start - input.preprocess;
  return input;
}

// Converts a part of a picture to a model input. The result's member `frame`
// describes the part as if it were a whole picture.
absl::StatusOr<PreparedInput> FromPart(const RgbImage& picture,
                                       const PixelRect& part,
                                       const model::ModelConfig& model,
                                       std::optional<ResizeMode> resize,
                                       const DecodeWatch& watch,
                                       RgbImage* own = nullptr) {
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<ImageBuffer> buffer =
      ToInput(picture, part, model, resize, watch, own);
  if (!buffer.ok()) return buffer.status();
  PreparedInput input;
  input.image = *std::move(buffer);
  input.frame.picture = input.frame.seen = {part.height, part.width};
  input.frame.input_size = {input.image.height, input.image.width};
  if (!KeepsRatio(model)) {
    input.frame.input = SeenPart(input.frame.seen, PreprocessOf(model, resize));
  }
  input.preprocess = base::SteadyNow() - start;
  return input;
}

absl::StatusOr<PreparedInput> FromTensor(const InputTensor& tensor,
                                         PixelPool* pool) {
  const absl::Time start = base::SteadyNow();
  absl::StatusOr<ImageBuffer> image = ToImageBuffer(tensor, pool);
  if (!image.ok()) return server::InField(".tensor", image.status());
  PreparedInput input;
  input.frame.picture = input.frame.seen = {image->height, image->width};
  input.frame.input_size = input.frame.seen;
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
  if (!KeepsRatio(model)) return InputAndTables(region, model);
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
      base::ReadImageHeader(image.encoded()->bytes, limits);
  if (!header.ok()) return ErrorOf(image, header.status());
  return base::NeedsOf(*header, image.apply_orientation, /*min_side=*/0).bytes;
}

int64_t InputMemory(const ImageSource& image, const ImageHeader& header,
                    const model::ModelConfig& model) {
  const base::DecodeNeeds needs =
      base::NeedsOf(header, image.apply_orientation, MinSide(image, model));
  const PictureSize picture = {needs.height, needs.width};
  if (IsResizedByRow(image, header, model)) {
    return header.decoder_bytes + InputAndTables(picture, model);
  }
  return std::max(needs.bytes, InputMemory(image, picture, model));
}

int64_t InputMemory(const ImageSource& image, const PictureSize& pixels,
                    const model::ModelConfig& model) {
  const PixelRect crop = CropOf(image, pixels);
  return RgbBytes(pixels) + RegionMemory({crop.height, crop.width}, model);
}

absl::StatusOr<PreparedInput> MakeInput(const ImageSource& image,
                                        const model::ModelConfig& model,
                                        std::optional<ResizeMode> resize,
                                        const ImageLimits& limits,
                                        DecodeWatch::Wanted wanted,
                                        PixelPool* pool, RgbImage* kept) {
  if (image.tensor() != nullptr) return FromTensor(*image.tensor(), pool);
  // Copies the picture if it arrived in several slices. The copy is made as
  // late as possible, just before decoding.
  if (image.fetch) image.fetch();
  const absl::Time start = base::SteadyNow();
  const DecodeWatch watch(limits.max_decode_time, base::ThreadCpuTime,
                          std::move(wanted));
  if (image.region() != nullptr) {
    return FromPart(*image.region()->picture, image.region()->rect, model,
                    resize, watch);
  }
  std::optional<PictureSize> oriented;
  if (image.encoded() != nullptr) {
    const absl::StatusOr<ImageHeader> header =
        base::ReadImageHeader(image.encoded()->bytes, limits);
    if (!header.ok()) return ErrorOf(image, header.status());
    oriented = OrientedSize(*header, image.apply_orientation);
    if (kept == nullptr && IsResizedByRow(image, *header, model)) {
      return FromRows(image, *header, model, resize, watch);
    }
  }
  const int min_side = kept == nullptr ? MinSide(image, model) : 0;
  absl::StatusOr<RgbImage> rgb =
      Decode(image, limits, min_side, watch, [](const RgbImage&, int) {});
  if (!rgb.ok()) return ErrorOf(image, rgb.status());
  const absl::Duration decode = base::SteadyNow() - start;
  const PictureSize picture = {rgb->height, rgb->width};
  const PixelRect crop = CropOf(image, picture);
  const bool owned = kept == nullptr && !image.crop.has_value();
  absl::StatusOr<PreparedInput> input =
      FromPart(*rgb, crop, model, resize, watch, owned ? &*rgb : nullptr);
  if (!input.ok()) return server::AtField(FieldOf(image), input.status());
  input->decode = decode;
  input->frame.picture = picture;
  input->frame.left = crop.left;
  input->frame.top = crop.top;
  const PixelRect seen = CropOf(image, oriented.value_or(picture));
  input->frame.seen = {seen.height, seen.width};
  if (kept != nullptr) *kept = *std::move(rgb);
  return input;
}

absl::StatusOr<DecodedPicture> DecodePicture(const ImageSource& image,
                                             const ImageLimits& limits,
                                             const DecodeWatch& watch,
                                             RowsDecoded decoded) {
  if (image.fetch) image.fetch();
  absl::StatusOr<RgbImage> rgb =
      Decode(image, limits, /*min_side=*/0, watch, decoded);
  if (!rgb.ok()) return ErrorOf(image, rgb.status());
  const PixelRect seen = CropOf(image, {rgb->height, rgb->width});
  return DecodedPicture{*std::move(rgb), seen};
}

absl::StatusOr<ImageBuffer> MakeInput(const RgbImage& picture,
                                      const PixelRect& part,
                                      const model::ModelConfig& model,
                                      std::optional<ResizeMode> resize,
                                      const DecodeWatch& watch) {
  if (watch.Expired()) return DecodeError(watch.status());
  return ToInput(picture, part, model, resize, watch, /*own=*/nullptr);
}

ImageBuffer CropInput(const ImageBuffer& input, const PixelRect& part) {
  ImageBuffer result;
  result.height = result.original_height = part.height;
  result.width = result.original_width = part.width;
  result.planar = input.planar;
  // Appends the rows of the part to `to`. Each pixel of `plane` has `values`
  // values.
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
