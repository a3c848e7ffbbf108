#include "server/rpc/wire/from_proto.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "server/errors/reasons.h"
#include "server/shares/priority.h"

namespace sfmamba::rpc {
namespace {

using prediction::ClassifyParams;
using prediction::DetectParams;
using prediction::SegmentParams;

// A protobuf Duration is at most about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

absl::Status NotAnEnumerator(absl::string_view field, int got,
                             absl::string_view expected = "a known value") {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected ", expected));
}

std::vector<int32_t> Vector(
    const google::protobuf::RepeatedField<int32_t>& field) {
  return {field.begin(), field.end()};
}

absl::Status ReadPriority(v1::RequestOptions::Priority priority,
                          prediction::RequestOptions* result) {
  switch (priority) {
    case v1::RequestOptions::HIGH:
      result->priority = server::Priority::kHigh;
      return absl::OkStatus();
    case v1::RequestOptions::PRIORITY_UNSPECIFIED:
    case v1::RequestOptions::NORMAL:
      result->priority = server::Priority::kNormal;
      return absl::OkStatus();
    case v1::RequestOptions::LOW:
      result->priority = server::Priority::kLow;
      return absl::OkStatus();
    default:
      return NotAnEnumerator("options.priority", priority);
  }
}

absl::Status ReadResize(v1::RequestOptions::Resize resize,
                        prediction::RequestOptions* result) {
  switch (resize) {
    case v1::RequestOptions::RESIZE_UNSPECIFIED:
      return absl::OkStatus();
    case v1::RequestOptions::STRETCH:
      result->resize = image::ResizeMode::kStretch;
      return absl::OkStatus();
    case v1::RequestOptions::LETTERBOX:
      result->resize = image::ResizeMode::kLetterbox;
      return absl::OkStatus();
    case v1::RequestOptions::CENTER_CROP:
      result->resize = image::ResizeMode::kCenterCrop;
      return absl::OkStatus();
    default:
      return NotAnEnumerator("options.resize", resize);
  }
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

absl::StatusOr<image::PixelBuffer> ReadPixels(const v1::PixelBuffer& pixels) {
  using Format = image::PixelBuffer::Format;
  image::PixelBuffer result;
  result.width = pixels.width();
  result.height = pixels.height();
  result.row_stride_bytes = pixels.row_stride_bytes();
  result.data = pixels.data();
  switch (pixels.format()) {
    case v1::PixelBuffer::RGB8:
      result.format = Format::kRgb8;
      return result;
    case v1::PixelBuffer::BGR8:
      result.format = Format::kBgr8;
      return result;
    case v1::PixelBuffer::RGBA8:
      result.format = Format::kRgba8;
      return result;
    case v1::PixelBuffer::BGRA8:
      result.format = Format::kBgra8;
      return result;
    case v1::PixelBuffer::GRAY8:
      result.format = Format::kGray8;
      return result;
    case v1::PixelBuffer::NV12:
      result.format = Format::kNv12;
      return result;
    default:
      return NotAnEnumerator(".pixels.format", pixels.format(),
                             "a known format");
  }
}

absl::StatusOr<image::InputTensor> ReadTensor(const v1::Tensor& tensor) {
  using Type = image::InputTensor::Type;
  image::InputTensor result;
  result.shape = {tensor.shape().data(),
                  static_cast<size_t>(tensor.shape_size())};
  result.data = tensor.data();
  switch (tensor.data_type()) {
    case v1::Tensor::FP32:
      result.type = Type::kFloat32;
      return result;
    case v1::Tensor::FP16:
      result.type = Type::kFloat16;
      return result;
    case v1::Tensor::BF16:
      result.type = Type::kBfloat16;
      return result;
    case v1::Tensor::UINT8:
      result.type = Type::kUint8;
      return result;
    default:
      return NotAnEnumerator(".tensor.data_type", tensor.data_type(),
                             "a known type");
  }
}

absl::Status ReadSource(const v1::Image& image, image::ImageSource* result) {
  switch (image.source_case()) {
    case v1::Image::kEncoded:
      result->source = image::EncodedImage{image.encoded()};
      return absl::OkStatus();
    case v1::Image::kPixels: {
      const absl::StatusOr<image::PixelBuffer> pixels =
          ReadPixels(image.pixels());
      if (pixels.ok()) result->source = *pixels;
      return pixels.status();
    }
    case v1::Image::kTensor: {
      const absl::StatusOr<image::InputTensor> tensor =
          ReadTensor(image.tensor());
      if (tensor.ok()) result->source = *tensor;
      return tensor.status();
    }
    default:
      return absl::OkStatus();  // ValidateImage refuses it.
  }
}

}  // namespace

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image) {
  if (!v1::Image::Orientation_IsValid(image.orientation())) {
    return NotAnEnumerator(".orientation", image.orientation());
  }
  image::ImageSource result;
  result.apply_orientation = image.orientation() != v1::Image::IGNORE;
  if (image.has_crop()) {
    const v1::NormalizedRect& crop = image.crop();
    result.crop = {crop.x_min(), crop.y_min(), crop.x_max(), crop.y_max()};
  }
  const absl::Status status = ReadSource(image, &result);
  if (!status.ok()) return status;
  return result;
}

absl::Status FromProto(const v1::RequestOptions& options,
                       prediction::RequestOptions* result) {
  result->include_timing = options.include_timing();
  result->allow_partial_results = options.allow_partial_results();
  result->validate_only = options.validate_only();
  absl::Status status = ReadPriority(options.priority(), result);
  status.Update(ReadResize(options.resize(), result));
  if (options.has_max_queue_wait()) {
    status.Update(ReadWait(options.max_queue_wait(), result));
  }
  return status;
}

absl::Status FromProto(const v1::ClassifyParams& params,
                       prediction::TaskParams* result) {
  ClassifyParams& classify = result->emplace<ClassifyParams>();
  classify.top_k = params.top_k();
  classify.min_score = params.min_score();
  classify.include_embedding = params.include_embedding();
  classify.class_filter = Vector(params.class_filter());
  switch (params.score_type()) {
    case v1::ClassifyParams::SCORE_TYPE_UNSPECIFIED:
    case v1::ClassifyParams::SOFTMAX:
      classify.score = ClassifyParams::Score::kSoftmax;
      return absl::OkStatus();
    case v1::ClassifyParams::LOGIT:
      classify.score = ClassifyParams::Score::kLogit;
      return absl::OkStatus();
    case v1::ClassifyParams::SIGMOID:
      classify.score = ClassifyParams::Score::kSigmoid;
      return absl::OkStatus();
    default:
      return NotAnEnumerator("params.score_type", params.score_type());
  }
}

absl::Status FromProto(const v1::DetectParams& params,
                       prediction::TaskParams* result) {
  DetectParams& detect = result->emplace<DetectParams>();
  if (params.has_score_threshold()) {
    detect.score_threshold = params.score_threshold();
  }
  if (params.has_nms_iou_threshold()) {
    detect.nms_iou_threshold = params.nms_iou_threshold();
  }
  detect.max_detections = params.max_detections();
  detect.class_filter = Vector(params.class_filter());
  detect.class_agnostic_nms = params.class_agnostic_nms();
  switch (params.mask_encoding()) {
    case v1::DetectParams::MASK_ENCODING_UNSPECIFIED:
      detect.mask_encoding = DetectParams::MaskEncoding::kNone;
      return absl::OkStatus();
    case v1::DetectParams::COCO_RLE:
      detect.mask_encoding = DetectParams::MaskEncoding::kCocoRle;
      return absl::OkStatus();
    case v1::DetectParams::PNG_CROP:
      detect.mask_encoding = DetectParams::MaskEncoding::kPngCrop;
      return absl::OkStatus();
    default:
      return NotAnEnumerator("params.mask_encoding", params.mask_encoding());
  }
}

absl::Status FromProto(const v1::SegmentParams& params,
                       prediction::TaskParams* result) {
  SegmentParams& segment = result->emplace<SegmentParams>();
  segment.include_class_areas = params.include_class_areas();
  segment.class_filter = Vector(params.class_filter());
  segment.include_confidence_map = params.include_confidence_map();
  absl::Status status;
  switch (params.encoding()) {
    case v1::SegmentParams::ENCODING_UNSPECIFIED:
    case v1::SegmentParams::PNG_INDEX:
      segment.encoding = SegmentParams::Encoding::kPngIndex;
      break;
    case v1::SegmentParams::RLE_PER_CLASS:
      segment.encoding = SegmentParams::Encoding::kRlePerClass;
      break;
    case v1::SegmentParams::RAW_INDEX:
      segment.encoding = SegmentParams::Encoding::kRawIndex;
      break;
    default:
      status = NotAnEnumerator("params.encoding", params.encoding());
  }
  switch (params.output_size()) {
    case v1::SegmentParams::OUTPUT_SIZE_UNSPECIFIED:
    case v1::SegmentParams::ORIGINAL:
      segment.output_size = SegmentParams::OutputSize::kOriginal;
      break;
    case v1::SegmentParams::MODEL:
      segment.output_size = SegmentParams::OutputSize::kModel;
      break;
    default:
      status.Update(
          NotAnEnumerator("params.output_size", params.output_size()));
  }
  return status;
}

}  // namespace sfmamba::rpc
