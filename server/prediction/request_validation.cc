#include "server/prediction/request_validation.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/base/error.h"
#include "server/image/image_input.h"
#include "server/image/keep_ratio.h"
#include "server/image/pixels.h"

namespace sfmamba::prediction {
namespace {

constexpr int kMaxRequestIdLength = 128;  // Characters.
constexpr int kMaxDetections = 1000;
// Of a protobuf Duration: about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected ", min, " to ", max));
}

absl::Status NotAnEnumerator(absl::string_view field, int got) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected a known value"));
}

absl::Status ValidateOptions(const v1::RequestOptions& options) {
  if (!v1::RequestOptions::Priority_IsValid(options.priority())) {
    return NotAnEnumerator("options.priority", options.priority());
  }
  if (!v1::RequestOptions::Resize_IsValid(options.resize())) {
    return NotAnEnumerator("options.resize", options.resize());
  }
  if (options.has_max_queue_wait()) {
    const auto& wait = options.max_queue_wait();
    const bool positive = wait.seconds() > 0 || wait.nanos() > 0;
    if (!positive || wait.seconds() < 0 ||
        wait.seconds() > kMaxDurationSeconds || wait.nanos() < 0 ||
        wait.nanos() > 999'999'999) {
      return server::InvalidField(
          "options.max_queue_wait",
          absl::StrCat("got ", wait.seconds(), " s and ", wait.nanos(),
                       " ns, expected a positive duration"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateResize(v1::RequestOptions::Resize resize,
                            const model::ModelConfig& model) {
  if (model.resize != model::Resize::kKeepRatio ||
      resize == v1::RequestOptions::RESIZE_UNSPECIFIED) {
    return absl::OkStatus();
  }
  return server::InvalidField(
      "options.resize",
      absl::StrCat("got ", v1::RequestOptions::Resize_Name(resize),
                   ", expected none: keep_ratio is all that "
                   "the model takes"));
}

absl::Status ValidateFraction(absl::string_view field, float fraction) {
  if (0 <= fraction && fraction <= 1) return absl::OkStatus();  // No NaN.
  return server::InvalidField(
      field, absl::StrCat("got ", fraction, ", expected 0 to 1"));
}

absl::Status ValidateClassFilter(
    const google::protobuf::RepeatedField<int32_t>& filter, int classes) {
  for (int i = 0; i < filter.size(); ++i) {
    if (filter[i] < 0 || filter[i] >= classes) {
      return OutOfRange(absl::StrCat("params.class_filter[", i, "]"), filter[i],
                        0, classes - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateCount(int got, int max) {
  if (got == 0) {
    return server::InvalidField(
        "images", absl::StrCat("got 0 images, expected 1 to ", max));
  }
  if (got <= max) return absl::OkStatus();
  server::ErrorDetail detail;
  detail.reason = "TOO_MANY_IMAGES";
  detail.field = "images";
  detail.metadata = {{"got", absl::StrCat(got)}, {"max", absl::StrCat(max)}};
  return server::MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("got ", got, " images, expected 1 to ", max),
      std::move(detail));
}

absl::Status ValidateCrop(const v1::NormalizedRect& crop) {
  const auto check = [](absl::string_view field, float min, float max) {
    if (0 <= min && min < max && max <= 1) return absl::OkStatus();  // No NaN.
    return server::InvalidField(field,
                                absl::StrCat("got ", min, " to ", max,
                                             ", expected 0 <= min < max <= 1"));
  };
  const absl::Status status = check(".crop.x_min", crop.x_min(), crop.x_max());
  return status.ok() ? check(".crop.y_min", crop.y_min(), crop.y_max())
                     : status;
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

// Fills what follows from the oriented picture's size and from how many
// pictures of it there are at once.
void FillSizes(const v1::Image& image, const model::ModelConfig& model,
               const image::PictureSize& picture, int copies,
               ImageFacts* facts) {
  const image::PixelRect crop = image::CropOf(image, picture);
  facts->pixels = picture.pixels();
  facts->seen = {crop.height, crop.width};
  facts->input =
      model.resize == model::Resize::kKeepRatio
          ? image::KeepRatioSize(facts->seen, model.short_side, model.long_side)
          : image::PictureSize{model.image_size, model.image_size};
  facts->input_bytes = 3 * facts->input.pixels();
  facts->decode_bytes = 3 * copies * facts->pixels + facts->input_bytes;
  if (image.has_crop()) facts->decode_bytes += 3 * facts->seen.pixels();
}

absl::Status ValidateEncoded(const v1::Image& image,
                             const model::ModelConfig& model,
                             const image::ImageLimits& limits,
                             ImageFacts* facts) {
  absl::StatusOr<image::ImageHeader> header =
      image::ReadImageHeader(image.encoded(), limits);
  if (!header.ok()) {
    server::ErrorDetail detail = server::GetErrorDetail(header.status());
    detail.field = ".encoded";
    return server::MakeError(header.status().code(), header.status().message(),
                             std::move(detail));
  }
  const bool orient = image.orientation() != v1::Image::IGNORE;
  facts->format = FormatName(header->format);
  FillSizes(image, model, image::OrientedSize(*header, orient),
            orient && header->orientation != 1 ? 2 : 1, facts);
  return absl::OkStatus();
}

absl::Status ValidatePixelBuffer(const v1::Image& image,
                                 const model::ModelConfig& model,
                                 const image::ImageLimits& limits,
                                 ImageFacts* facts) {
  const v1::PixelBuffer& pixels = image.pixels();
  facts->format = "pixels";
  const absl::Status status = image::ValidatePixels(pixels, limits);
  if (!status.ok()) return server::InField(".pixels", status);
  FillSizes(image, model, {pixels.height(), pixels.width()}, 1, facts);
  return absl::OkStatus();
}

absl::Status ValidateTensorImage(const v1::Tensor& tensor,
                                 const model::ModelConfig& model,
                                 ImageFacts* facts) {
  facts->format = "tensor";
  const absl::Status status = image::ValidateTensor(tensor, model);
  if (!status.ok()) return server::InField(".tensor", status);
  facts->input = {static_cast<int>(tensor.shape(1)),
                  static_cast<int>(tensor.shape(2))};
  facts->seen = facts->input;
  facts->pixels = facts->input.pixels();
  facts->input_bytes = 3 * facts->pixels;
  if (tensor.data_type() != v1::Tensor::UINT8) {
    facts->input_bytes *= sizeof(float);
  }
  facts->decode_bytes = facts->input_bytes;
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateRequestId(const std::string& request_id) {
  const int length = base::Utf8Length(request_id);
  if (length >= 0 && length <= kMaxRequestIdLength) return absl::OkStatus();
  return server::InvalidField(
      "request_id",
      absl::StrCat("got ", length, " characters, expected at most ",
                   kMaxRequestIdLength));
}

absl::Status ValidateRequest(int images, const v1::RequestOptions& options,
                             const model::ModelConfig& model,
                             const RequestLimits& limits) {
  absl::Status status = ValidateCount(images, limits.max_images);
  if (status.ok()) status = ValidateOptions(options);
  if (status.ok()) status = ValidateResize(options.resize(), model);
  return status;
}

absl::Status ValidateParams(const v1::ClassifyParams& params, int classes) {
  if (params.top_k() < 0 || params.top_k() > classes) {
    return OutOfRange("params.top_k", params.top_k(), 0, classes);
  }
  if (!std::isfinite(params.min_score())) {
    return server::InvalidField(
        "params.min_score",
        absl::StrCat("got ", params.min_score(), ", expected a finite number"));
  }
  if (!v1::ClassifyParams::ScoreType_IsValid(params.score_type())) {
    return NotAnEnumerator("params.score_type", params.score_type());
  }
  return ValidateClassFilter(params.class_filter(), classes);
}

absl::Status ValidateParams(const v1::DetectParams& params, int classes) {
  // What is unset is 0 and passes.
  absl::Status status =
      ValidateFraction("params.score_threshold", params.score_threshold());
  if (status.ok()) {
    status = ValidateFraction("params.nms_iou_threshold",
                              params.nms_iou_threshold());
  }
  if (!status.ok()) return status;
  if (params.max_detections() < 0 || params.max_detections() > kMaxDetections) {
    return OutOfRange("params.max_detections", params.max_detections(), 0,
                      kMaxDetections);
  }
  if (!v1::DetectParams::MaskEncoding_IsValid(params.mask_encoding())) {
    return NotAnEnumerator("params.mask_encoding", params.mask_encoding());
  }
  return ValidateClassFilter(params.class_filter(), classes);
}

absl::Status ValidateParams(const v1::SegmentParams& params, int classes) {
  if (!v1::SegmentParams::Encoding_IsValid(params.encoding())) {
    return NotAnEnumerator("params.encoding", params.encoding());
  }
  if (!v1::SegmentParams::OutputSize_IsValid(params.output_size())) {
    return NotAnEnumerator("params.output_size", params.output_size());
  }
  return ValidateClassFilter(params.class_filter(), classes);
}

absl::Status ValidateImage(const v1::Image& image,
                           const model::ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts) {
  if (!v1::Image::Orientation_IsValid(image.orientation())) {
    return NotAnEnumerator(".orientation", image.orientation());
  }
  if (image.has_crop()) {
    if (image.has_tensor()) {
      return server::InvalidField(".crop",
                                  "got a crop, expected none of a tensor");
    }
    const absl::Status status = ValidateCrop(image.crop());
    if (!status.ok()) return status;
  }
  switch (image.source_case()) {
    case v1::Image::kEncoded:
      return ValidateEncoded(image, model, limits.image, facts);
    case v1::Image::kPixels:
      return ValidatePixelBuffer(image, model, limits.image, facts);
    case v1::Image::kTensor:
      return ValidateTensorImage(image.tensor(), model, facts);
    default:
      return server::InvalidField(
          "", "got no source, expected encoded, pixels or tensor");
  }
}

}  // namespace sfmamba::prediction
