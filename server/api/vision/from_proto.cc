#include "server/api/vision/from_proto.h"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "google/protobuf/descriptor.h"
#include "server/errors/reasons.h"
#include "server/shares/priority.h"

namespace sfmamba::api {
namespace {

// The maximum of a protobuf Duration, which is about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

// Maps a protobuf enum value to the corresponding value of the server's own
// enum.
template <typename Proto, typename Own>
struct Meaning {
  Proto proto;
  Own own;
};

absl::Status Unknown(absl::string_view field, int got) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected a known value"));
}

// Sets `own` to the server's value for the protobuf value `got`. If `meanings`
// does not contain `got`, returns INVALID_ARGUMENT with field `field`.
template <typename Proto, typename Own>
absl::Status Translate(absl::string_view field, Proto got,
                       std::initializer_list<Meaning<Proto, Own>> meanings,
                       Own* own) {
  for (const Meaning<Proto, Own>& meaning : meanings) {
    if (meaning.proto != got) continue;
    *own = meaning.own;
    return absl::OkStatus();
  }
  return Unknown(field, got);
}

absl::Status ReadWait(const google::protobuf::Duration& wait,
                      prediction::RequestOptions* result) {
  if (wait.seconds() < 0 || wait.seconds() > kMaxDurationSeconds ||
      wait.nanos() < 0 || wait.nanos() > 999'999'999) {
    return server::InvalidField(
        "options.max_queue_wait",
        absl::StrCat("got ", wait.seconds(), " s and ", wait.nanos(),
                     " ns, expected a positive duration"));
  }
  result->max_queue_wait = base::FromProto(wait);
  return absl::OkStatus();
}

absl::Status Read(const v1::PixelBuffer& pixels, image::PixelBuffer* result) {
  result->width = pixels.width();
  result->height = pixels.height();
  result->row_stride_bytes = pixels.row_stride_bytes();
  result->data = pixels.data();
  return Translate(
      ".pixels.format", pixels.format(),
      {{v1::PixelBuffer::RGB8, image::PixelBuffer::Format::kRgb8},
       {v1::PixelBuffer::BGR8, image::PixelBuffer::Format::kBgr8},
       {v1::PixelBuffer::RGBA8, image::PixelBuffer::Format::kRgba8},
       {v1::PixelBuffer::BGRA8, image::PixelBuffer::Format::kBgra8},
       {v1::PixelBuffer::GRAY8, image::PixelBuffer::Format::kGray8},
       {v1::PixelBuffer::NV12, image::PixelBuffer::Format::kNv12}},
      &result->format);
}

absl::Status Read(const v1::Tensor& tensor, image::InputTensor* result) {
  result->shape = {tensor.shape().data(),
                   static_cast<size_t>(tensor.shape_size())};
  result->data = tensor.data();
  return Translate(".tensor.data_type", tensor.data_type(),
                   {{v1::Tensor::FP32, image::InputTensor::Type::kFloat32},
                    {v1::Tensor::FP16, image::InputTensor::Type::kFloat16},
                    {v1::Tensor::BF16, image::InputTensor::Type::kBfloat16},
                    {v1::Tensor::UINT8, image::InputTensor::Type::kUint8}},
                   &result->type);
}

absl::Status Read(const v1::Image& image, image::ImageSource* result) {
  switch (image.source_case()) {
    case v1::Image::kEncoded:
      result->source = image::EncodedImage{image.encoded()};
      return absl::OkStatus();
    case v1::Image::kPixels:
      return Read(image.pixels(),
                  &result->source.emplace<image::PixelBuffer>());
    case v1::Image::kTensor:
      return Read(image.tensor(),
                  &result->source.emplace<image::InputTensor>());
    default:
      // ValidateImage() rejects an image without a source.
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image) {
  if (!v1::Image::Orientation_IsValid(image.orientation())) {
    return Unknown(".orientation", image.orientation());
  }
  image::ImageSource result;
  result.apply_orientation = image.orientation() != v1::Image::IGNORE;
  if (image.has_crop()) {
    const v1::NormalizedRect& crop = image.crop();
    result.crop = {crop.x_min(), crop.y_min(),
                   crop.has_x_max() ? crop.x_max() : 1,
                   crop.has_y_max() ? crop.y_max() : 1};
  }
  const absl::Status status = Read(image, &result);
  if (!status.ok()) return status;
  return result;
}

absl::Status FromProto(const v1::RequestOptions& options,
                       prediction::RequestOptions* result) {
  result->include_timing = options.include_timing();
  result->allow_partial_results = options.allow_partial_results();
  result->validate_only = options.validate_only();
  absl::Status status = Translate(
      "options.priority", options.priority(),
      {{v1::RequestOptions::PRIORITY_UNSPECIFIED, server::Priority::kNormal},
       {v1::RequestOptions::HIGH, server::Priority::kHigh},
       {v1::RequestOptions::NORMAL, server::Priority::kNormal},
       {v1::RequestOptions::LOW, server::Priority::kLow}},
      &result->priority);
  status.Update(Translate(
      "options.resize", options.resize(),
      {{v1::RequestOptions::RESIZE_UNSPECIFIED, std::nullopt},
       {v1::RequestOptions::STRETCH, image::ResizeMode::kStretch},
       {v1::RequestOptions::LETTERBOX, image::ResizeMode::kLetterbox},
       {v1::RequestOptions::CENTER_CROP, image::ResizeMode::kCenterCrop}},
      &result->resize));
  if (options.has_max_queue_wait()) {
    status.Update(ReadWait(options.max_queue_wait(), result));
  }
  return status;
}

absl::Status CheckEnums(const std::string& prefix,
                        const google::protobuf::Message& message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  fields.ListFields(message, &set);
  absl::Status status;
  for (const FieldDescriptor* field : set) {
    if (field->is_repeated()) continue;
    const std::string name = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      status.Update(CheckEnums(name + ".", fields.GetMessage(message, field)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const int got = fields.GetEnumValue(message, field);
      if (field->enum_type()->FindValueByNumber(got) == nullptr) {
        status.Update(Unknown(name, got));
      }
    }
  }
  return status;
}

}  // namespace sfmamba::api
