#include "server/request_validation.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/error.h"
#include "server/pixels.h"
#include "server/utf8.h"

namespace sfmamba {
namespace {

constexpr int kMaxRequestIdLength = 128;  // Characters.
// Of a protobuf Duration: about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

absl::Status OutOfRange(absl::string_view field, int64_t got, int64_t min,
                        int64_t max) {
  return InvalidField(
      field, absl::StrCat("got ", got, ", expected ", min, " to ", max));
}

absl::Status NotAnEnumerator(absl::string_view field, int got) {
  return InvalidField(field,
                      absl::StrCat("got ", got, ", expected a known value"));
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
      return InvalidField(
          "options.max_queue_wait",
          absl::StrCat("got ", wait.seconds(), " s and ", wait.nanos(),
                       " ns, expected a positive duration"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateParams(const v1::ClassifyParams& params, int classes) {
  if (params.top_k() < 0 || params.top_k() > classes) {
    return OutOfRange("params.top_k", params.top_k(), 0, classes);
  }
  if (!std::isfinite(params.min_score())) {
    return InvalidField(
        "params.min_score",
        absl::StrCat("got ", params.min_score(), ", expected a finite number"));
  }
  if (!v1::ClassifyParams::ScoreType_IsValid(params.score_type())) {
    return NotAnEnumerator("params.score_type", params.score_type());
  }
  for (int i = 0; i < params.class_filter_size(); ++i) {
    const int id = params.class_filter(i);
    if (id < 0 || id >= classes) {
      return OutOfRange(absl::StrCat("params.class_filter[", i, "]"), id, 0,
                        classes - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateCount(int got, int max) {
  if (got == 0) {
    return InvalidField("images",
                        absl::StrCat("got 0 images, expected 1 to ", max));
  }
  if (got <= max) return absl::OkStatus();
  ErrorDetail detail;
  detail.reason = "TOO_MANY_IMAGES";
  detail.field = "images";
  detail.metadata = {{"got", absl::StrCat(got)}, {"max", absl::StrCat(max)}};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("got ", got, " images, expected 1 to ", max),
                   std::move(detail));
}

absl::Status ValidateCrop(const v1::NormalizedRect& crop) {
  const auto check = [](absl::string_view field, float min, float max) {
    if (0 <= min && min < max && max <= 1) return absl::OkStatus();  // No NaN.
    return InvalidField(field, absl::StrCat("got ", min, " to ", max,
                                            ", expected 0 <= min < max <= 1"));
  };
  const absl::Status status = check(".crop.x_min", crop.x_min(), crop.x_max());
  return status.ok() ? check(".crop.y_min", crop.y_min(), crop.y_max())
                     : status;
}

absl::string_view FormatName(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "jpeg";
    case ImageFormat::kPng:
      return "png";
    case ImageFormat::kWebp:
      return "webp";
  }
  return "unknown";
}

absl::Status ValidateEncoded(const std::string& encoded,
                             const ImageLimits& limits, ImageFacts* facts) {
  absl::StatusOr<ImageHeader> header = ReadImageHeader(encoded, limits);
  if (!header.ok()) {
    ErrorDetail detail = GetErrorDetail(header.status());
    detail.field = ".encoded";
    return MakeError(header.status().code(), header.status().message(),
                     std::move(detail));
  }
  facts->format = FormatName(header->format);
  facts->pixels = int64_t{header->width} * header->height;
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateRequestId(const std::string& request_id) {
  const int length = Utf8Length(request_id);
  if (length >= 0 && length <= kMaxRequestIdLength) return absl::OkStatus();
  return InvalidField(
      "request_id",
      absl::StrCat("got ", length, " characters, expected at most ",
                   kMaxRequestIdLength));
}

absl::Status ValidateClassify(const v1::ClassifyRequest& request, int classes,
                              const RequestLimits& limits) {
  absl::Status status = ValidateRequestId(request.request_id());
  if (status.ok()) {
    status = ValidateCount(request.images_size(), limits.max_images);
  }
  if (status.ok()) status = ValidateOptions(request.options());
  if (status.ok()) status = ValidateParams(request.params(), classes);
  return status;
}

absl::Status ValidateImage(const v1::Image& image, const ModelConfig& model,
                           const RequestLimits& limits, ImageFacts* facts) {
  if (!v1::Image::Orientation_IsValid(image.orientation())) {
    return NotAnEnumerator(".orientation", image.orientation());
  }
  if (image.has_crop()) {
    if (image.has_tensor()) {
      return InvalidField(".crop", "got a crop, expected none of a tensor");
    }
    const absl::Status status = ValidateCrop(image.crop());
    if (!status.ok()) return status;
  }
  const int64_t plane = int64_t{model.image_size} * model.image_size;
  facts->input_bytes = 3 * plane;
  switch (image.source_case()) {
    case v1::Image::kEncoded:
      return ValidateEncoded(image.encoded(), limits.image, facts);
    case v1::Image::kPixels:
      facts->format = "pixels";
      facts->pixels = int64_t{image.pixels().width()} * image.pixels().height();
      return InField(".pixels", ValidatePixels(image.pixels(), limits.image));
    case v1::Image::kTensor:
      facts->format = "tensor";
      facts->pixels = plane;
      if (image.tensor().data_type() != v1::Tensor::UINT8) {
        facts->input_bytes *= sizeof(float);
      }
      return InField(".tensor",
                     ValidateTensor(image.tensor(), model.image_size));
    default:
      return InvalidField("",
                          "got no source, expected encoded, pixels or tensor");
  }
}

}  // namespace sfmamba
