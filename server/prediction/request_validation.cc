#include "server/prediction/request_validation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/image_header.h"
#include "base/utf8.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/image/image_input.h"
#include "server/image/keep_ratio.h"
#include "server/image/pixels.h"

namespace sfmamba::prediction {
namespace {

constexpr int kMaxRequestIdLength = 128;  // In characters.
constexpr int kMaxDetections = 1000;

const char* ResizeName(image::ResizeMode mode) {
  switch (mode) {
    case image::ResizeMode::kStretch:
      return "STRETCH";
    case image::ResizeMode::kLetterbox:
      return "LETTERBOX";
    case image::ResizeMode::kCenterCrop:
      return "CENTER_CROP";
  }
  return "";
}

absl::Status ValidateOptions(const RequestOptions& options,
                             const model::ModelConfig& model) {
  if (options.max_queue_wait.has_value() &&
      *options.max_queue_wait <= absl::ZeroDuration()) {
    return server::InvalidField(
        "options.max_queue_wait",
        absl::StrCat("got ", absl::FormatDuration(*options.max_queue_wait),
                     ", expected a positive duration"));
  }
  if (options.resize.has_value() && model.resize == model::Resize::kKeepRatio) {
    return server::InvalidField(
        "options.resize",
        absl::StrCat("got ", ResizeName(*options.resize),
                     ", expected none: keep_ratio is all that the model "
                     "takes"));
  }
  return absl::OkStatus();
}

// Checks that `top_k` is at most the number of classes and that `min_score` is
// finite. In an error, the field name is `prefix` followed by "top_k" or
// "min_score".
absl::Status ValidateRanking(const std::string& prefix, int top_k,
                             float min_score, int classes) {
  const absl::Status status = CheckRange(prefix + "top_k", top_k, classes);
  if (!status.ok() || std::isfinite(min_score)) return status;
  return server::InvalidField(
      prefix + "min_score",
      absl::StrCat("got ", min_score, ", expected a finite number"));
}

absl::Status ValidateClassFilter(absl::Span<const int32_t> filter,
                                 int classes) {
  absl::Status status;
  for (size_t i = 0; i < filter.size() && status.ok(); ++i) {
    status = CheckRange(absl::StrCat("params.class_filter[", i, "]"), filter[i],
                        classes - 1);
  }
  return status;
}

absl::Status ValidateCount(int got, int max) {
  if (got == 0) {
    return server::InvalidField(
        "images", absl::StrCat("got 0 images, expected 1 to ", max));
  }
  if (got > max) return server::TooManyImages(got, max);
  return absl::OkStatus();
}

absl::Status ValidateCrop(const image::CropRect& crop) {
  const auto check = [](absl::string_view field, float min, float max) {
    if (0 <= min && min < max && max <= 1)
      return absl::OkStatus();  // NaN fails the check.
    return server::InvalidField(field,
                                absl::StrCat("got ", min, " to ", max,
                                             ", expected 0 <= min < max <= 1"));
  };
  const absl::Status status = check(".crop.x_min", crop.x_min, crop.x_max);
  return status.ok() ? check(".crop.y_min", crop.y_min, crop.y_max) : status;
}

absl::string_view FormatName(image::ImageFormat format) {
  switch (format) {
    case image::ImageFormat::kJpeg:
      return "jpeg";
    case image::ImageFormat::kPng:
      return "png";
    case image::ImageFormat::kWebp:
      return "webp";
  }
  return "unknown";
}

// Returns the size of the model input for a picture of size `seen`.
image::PictureSize InputSize(const model::ModelConfig& model,
                             const image::PictureSize& seen) {
  if (model.resize == model::Resize::kKeepRatio) {
    return image::KeepRatioSize(seen, model.short_side, model.long_side);
  }
  return {model.image_size, model.image_size};
}

// Returns an error with reason IMAGE_TOO_LARGE if decoding would take more
// memory than limits.max_decode_bytes.
absl::Status CheckDecodeMemory(const image::ImageSource& image,
                               const RequestLimits& limits,
                               const ImageFacts& facts) {
  if (facts.decode_bytes <= limits.max_decode_bytes) return absl::OkStatus();
  return server::AtField(
      image.encoded() != nullptr ? ".encoded" : "",
      server::ImageTooLarge(absl::StrCat("decoding takes ", facts.decode_bytes,
                                         " bytes of memory, expected at most ",
                                         limits.max_decode_bytes)));
}

// Sets the sizes, the batch key and the input memory in `facts`. Images with
// the same batch key may share a batch. `picture` is the size of the picture
// before the crop. If the picture's EXIF orientation is applied, this is the
// size after the rotation.
void FillSizes(const image::ImageSource& image, const model::ModelConfig& model,
               const image::PictureSize& picture, ImageFacts* facts) {
  const image::PixelRect crop = image::CropOf(image, picture);
  facts->pixels = picture.pixels();
  facts->seen = {crop.height, crop.width};
  facts->input = InputSize(model, facts->seen);
  facts->key = KeyOf(model, facts->input, batching::ImageType::kUint8);
  facts->input_bytes = 3 * facts->input.pixels();
}

absl::Status ValidateEncoded(const image::ImageSource& image,
                             const model::ModelConfig& model,
                             const image::ImageLimits& limits,
                             ImageFacts* facts) {
  absl::StatusOr<image::ImageHeader> header =
      base::ReadImageHeader(image.encoded()->bytes, limits);
  if (!header.ok()) {
    return server::AtField(".encoded", image::DecodeError(header.status()));
  }
  facts->format = FormatName(header->format);
  FillSizes(image, model, image::OrientedSize(*header, image.apply_orientation),
            facts);
  facts->decode_bytes = image::InputMemory(image, *header, model);
  return absl::OkStatus();
}

absl::Status ValidatePixelBuffer(const image::ImageSource& image,
                                 const model::ModelConfig& model,
                                 const image::ImageLimits& limits,
                                 ImageFacts* facts) {
  const image::PixelBuffer& pixels = *image.pixels();
  facts->format = "pixels";
  const absl::Status status = image::ValidatePixels(pixels, limits);
  if (!status.ok()) return server::InField(".pixels", status);
  const image::PictureSize size = {pixels.height, pixels.width};
  FillSizes(image, model, size, facts);
  facts->decode_bytes = image::InputMemory(image, size, model);
  return absl::OkStatus();
}

absl::Status ValidateTensorImage(const image::InputTensor& tensor,
                                 const model::ModelConfig& model,
                                 ImageFacts* facts) {
  facts->format = "tensor";
  const absl::Status status = image::ValidateTensor(tensor, model);
  if (!status.ok()) return server::InField(".tensor", status);
  facts->input = {static_cast<int>(tensor.shape[1]),
                  static_cast<int>(tensor.shape[2])};
  facts->seen = facts->input;
  facts->pixels = facts->input.pixels();
  const bool is_uint8 = tensor.type == image::InputTensor::Type::kUint8;
  facts->key = KeyOf(
      model, facts->input,
      is_uint8 ? batching::ImageType::kUint8 : batching::ImageType::kFloat32);
  facts->input_bytes = 3 * facts->pixels * (is_uint8 ? 1 : sizeof(float));
  facts->decode_bytes = facts->input_bytes;
  return absl::OkStatus();
}

absl::Status ValidateSource(const image::ImageSource& image,
                            const model::ModelConfig& model,
                            const RequestLimits& limits, ImageFacts* facts) {
  if (image.crop.has_value()) {
    if (image.tensor() != nullptr) {
      return server::InvalidField(".crop",
                                  "got a crop of a tensor, expected no crop");
    }
    const absl::Status status = ValidateCrop(*image.crop);
    if (!status.ok()) return status;
  }
  if (image.encoded() != nullptr) {
    return ValidateEncoded(image, model, limits.image, facts);
  }
  if (image.pixels() != nullptr) {
    return ValidatePixelBuffer(image, model, limits.image, facts);
  }
  if (image.region() != nullptr) {
    const image::PixelRect& rect = image.region()->rect;
    facts->format = "pixels";
    FillSizes(image, model, {rect.height, rect.width}, facts);
    facts->decode_bytes = image::RegionMemory(facts->seen, model);
    return absl::OkStatus();
  }
  if (image.tensor() != nullptr) {
    return ValidateTensorImage(*image.tensor(), model, facts);
  }
  return server::InvalidField(
      "", "got no source, expected encoded, pixels or tensor");
}

}  // namespace

absl::Status ValidateRequestId(absl::string_view request_id) {
  const int length = base::Utf8Length(request_id);
  if (length >= 0 && length <= kMaxRequestIdLength) return absl::OkStatus();
  return server::InvalidField(
      "request_id",
      absl::StrCat("got ", length, " characters, expected at most ",
                   kMaxRequestIdLength));
}

absl::Status ValidateRequest(const PredictionRequest& request,
                             const model::ModelConfig& model,
                             const RequestLimits& limits) {
  absl::Status status = ValidateCount(request.images, limits.max_images);
  if (status.ok()) status = request.malformed;
  if (status.ok()) status = ValidateOptions(request.options, model);
  return status;
}

absl::Status CheckRange(absl::string_view field, int64_t got, int64_t most) {
  if (0 <= got && got <= most) return absl::OkStatus();
  return server::OutOfRange(field, got, 0, most);
}

absl::Status CheckFraction(absl::string_view field, float got, float most) {
  if (0 <= got && got <= most) return absl::OkStatus();  // NaN fails the check.
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected 0 to ", most));
}

absl::Status ValidateParams(const v1::ClassifyParams& params, int classes) {
  absl::Status status =
      ValidateRanking("params.", params.top_k(), params.min_score(), classes);
  status.Update(CheckRange("params.heat_map.class_id",
                           params.heat_map().class_id(), classes - 1));
  status.Update(ValidateClassFilter(params.class_filter(), classes));
  return status;
}

absl::Status ValidateParams(const v1::DetectParams& params, int classes) {
  absl::Status status =
      CheckFraction("params.score_threshold", params.score_threshold());
  status.Update(
      CheckFraction("params.nms_iou_threshold", params.nms_iou_threshold()));
  status.Update(CheckRange("params.max_detections", params.max_detections(),
                           kMaxDetections));
  status.Update(ValidateClassFilter(params.class_filter(), classes));
  return status;
}

absl::Status ValidateCrops(const v1::Crops& crops, int classes) {
  absl::Status status = ValidateRanking("params.crops.", crops.top_k(),
                                        crops.min_score(), classes);
  status.Update(CheckFraction("params.crops.margin", crops.margin()));
  return status;
}

absl::Status ValidateParams(const v1::SegmentParams& params, int classes) {
  return ValidateClassFilter(params.class_filter(), classes);
}

batching::BatchKey KeyOf(const model::ModelConfig& model,
                         const image::PictureSize& input,
                         batching::ImageType type) {
  batching::BatchKey key;
  key.height = model.Padded(input.height);
  key.width = model.Padded(input.width);
  key.type = type;
  return key;
}

absl::Status ValidateImage(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts) {
  const absl::Status status = ValidateSource(image, model, limits, facts);
  return status.ok() ? CheckDecodeMemory(image, limits, *facts) : status;
}

PartFacts PartOf(const model::ModelConfig& model,
                 const image::PixelRect& region) {
  const image::PictureSize input =
      InputSize(model, {region.height, region.width});
  return {region, KeyOf(model, input, batching::ImageType::kUint8),
          3 * input.pixels()};
}

absl::Status ValidateParts(const image::ImageSource& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts) {
  if (image.tensor() != nullptr) {
    return server::InvalidField(
        ".tensor", "got a tensor, expected a picture that can be divided");
  }
  const absl::StatusOr<int64_t> picture =
      image::PictureMemory(image, limits.image);
  if (!picture.ok()) return picture.status();
  int64_t largest = 0;
  facts->input_bytes = 0;
  for (const PartFacts& part : facts->parts) {
    facts->input_bytes += part.input_bytes;
    largest = std::max(
        largest,
        image::RegionMemory({part.region.height, part.region.width}, model));
  }
  facts->decode_bytes = std::max(*picture, 3 * facts->pixels + largest);
  return CheckDecodeMemory(image, limits, *facts);
}

absl::Status ValidateKeptPicture(const image::ImageSource& image,
                                 const model::ModelConfig& model,
                                 const RequestLimits& limits,
                                 ImageFacts* facts) {
  if (image.tensor() != nullptr) {
    return server::InvalidField(
        ".tensor", "got a tensor, expected a picture to cut crops out of");
  }
  facts->picture_bytes = 3 * facts->pixels;
  if (!facts->parts.empty()) return absl::OkStatus();
  const absl::StatusOr<int64_t> picture =
      image::PictureMemory(image, limits.image);
  if (!picture.ok()) return picture.status();
  facts->decode_bytes = std::max(
      *picture, facts->picture_bytes + image::RegionMemory(facts->seen, model));
  return CheckDecodeMemory(image, limits, *facts);
}

absl::Status AtImage(int i, const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  server::ErrorDetail detail = server::GetErrorDetail(status);
  detail.field = absl::StrCat("images[", i, "]", detail.field);
  const std::string message =
      absl::StrCat(detail.field, ": ", status.message());
  return server::MakeError(status.code(), message, std::move(detail));
}

}  // namespace sfmamba::prediction
