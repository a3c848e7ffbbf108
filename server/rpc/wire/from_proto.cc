#include "server/rpc/wire/from_proto.h"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "server/errors/reasons.h"
#include "server/shares/priority.h"

namespace sfmamba::rpc {
namespace {

using prediction::ClassifyParams;
using prediction::DetectParams;
using prediction::HeatMapParams;
using prediction::SegmentParams;

// A protobuf Duration is at most about 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;

// What an enumerator of a message is called here.
template <typename Proto, typename Own>
struct Meaning {
  Proto proto;
  Own own;
};

// Sets `own` to what `got` means; INVALID_ARGUMENT with field `field` if it is
// none of `meanings`.
template <typename Proto, typename Own>
absl::Status Translate(absl::string_view field, Proto got,
                       std::initializer_list<Meaning<Proto, Own>> meanings,
                       Own* own) {
  for (const Meaning<Proto, Own>& meaning : meanings) {
    if (meaning.proto != got) continue;
    *own = meaning.own;
    return absl::OkStatus();
  }
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected a known value"));
}

std::vector<int32_t> Vector(
    const google::protobuf::RepeatedField<int32_t>& field) {
  return {field.begin(), field.end()};
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

absl::Status Read(const v1::Tiles& tiles, prediction::Tiles* result) {
  result->width = tiles.width();
  result->height = tiles.height();
  if (tiles.has_overlap()) result->overlap = tiles.overlap();
  result->without_picture = tiles.without_picture();
  if (tiles.has_match_threshold()) {
    result->match_threshold = tiles.match_threshold();
  }
  result->max_tiles = tiles.max_tiles();
  absl::Status status =
      Translate("params.tiles.merge", tiles.merge(),
                {{v1::Tiles::MERGE_UNSPECIFIED, prediction::Tiles::Merge::kNms},
                 {v1::Tiles::NMS, prediction::Tiles::Merge::kNms},
                 {v1::Tiles::GREEDY_NMM, prediction::Tiles::Merge::kGreedyNmm}},
                &result->merge);
  status.Update(
      Translate("params.tiles.match", tiles.match(),
                {{v1::Tiles::MATCH_UNSPECIFIED, prediction::Tiles::Match::kIou},
                 {v1::Tiles::IOU, prediction::Tiles::Match::kIou},
                 {v1::Tiles::IOS, prediction::Tiles::Match::kIos}},
                &result->match));
  return status;
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
      return absl::OkStatus();  // ValidateImage refuses it.
  }
}

}  // namespace

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image) {
  if (!v1::Image::Orientation_IsValid(image.orientation())) {
    return server::InvalidField(
        ".orientation",
        absl::StrCat("got ", image.orientation(), ", expected a known value"));
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

absl::Status FromProto(const v1::ClassifyParams& params,
                       prediction::TaskParams* result) {
  ClassifyParams& classify = result->emplace<ClassifyParams>();
  classify.top_k = params.top_k();
  classify.min_score = params.min_score();
  classify.include_embedding = params.include_embedding();
  classify.class_filter = Vector(params.class_filter());
  absl::Status status = Translate(
      "params.score_type", params.score_type(),
      {{v1::ClassifyParams::SCORE_TYPE_UNSPECIFIED,
        ClassifyParams::Score::kSoftmax},
       {v1::ClassifyParams::SOFTMAX, ClassifyParams::Score::kSoftmax},
       {v1::ClassifyParams::LOGIT, ClassifyParams::Score::kLogit},
       {v1::ClassifyParams::SIGMOID, ClassifyParams::Score::kSigmoid}},
      &classify.score);
  if (params.has_heat_map()) {
    HeatMapParams& heat_map = classify.heat_map.emplace();
    if (params.heat_map().has_class_id()) {
      heat_map.class_id = params.heat_map().class_id();
    }
    status.Update(Translate(
        "params.heat_map.encoding", params.heat_map().encoding(),
        {{v1::HeatMapParams::ENCODING_UNSPECIFIED,
          HeatMapParams::Encoding::kValues},
         {v1::HeatMapParams::VALUES, HeatMapParams::Encoding::kValues},
         {v1::HeatMapParams::PNG, HeatMapParams::Encoding::kPng}},
        &heat_map.encoding));
  }
  return status;
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
  absl::Status status = Translate(
      "params.mask_encoding", params.mask_encoding(),
      {{v1::DetectParams::MASK_ENCODING_UNSPECIFIED,
        DetectParams::MaskEncoding::kNone},
       {v1::DetectParams::COCO_RLE, DetectParams::MaskEncoding::kCocoRle},
       {v1::DetectParams::PNG_CROP, DetectParams::MaskEncoding::kPngCrop}},
      &detect.mask_encoding);
  if (params.has_tiles()) {
    status.Update(Read(params.tiles(), &detect.tiles.emplace()));
  }
  if (params.has_crops()) {
    const v1::Crops& crops = params.crops();
    detect.crops = {crops.model(), crops.top_k(), crops.min_score(),
                    crops.include_embedding(), crops.margin()};
  }
  return status;
}

absl::Status FromProto(const v1::SegmentParams& params,
                       prediction::TaskParams* result) {
  SegmentParams& segment = result->emplace<SegmentParams>();
  segment.include_class_areas = params.include_class_areas();
  segment.class_filter = Vector(params.class_filter());
  segment.include_confidence_map = params.include_confidence_map();
  if (params.has_slide()) {
    const v1::SlidingWindow& slide = params.slide();
    segment.slide = {slide.width(), slide.height(), slide.stride_x(),
                     slide.stride_y()};
  }
  absl::Status status = Translate(
      "params.encoding", params.encoding(),
      {{v1::SegmentParams::ENCODING_UNSPECIFIED,
        SegmentParams::Encoding::kPngIndex},
       {v1::SegmentParams::PNG_INDEX, SegmentParams::Encoding::kPngIndex},
       {v1::SegmentParams::RLE_PER_CLASS,
        SegmentParams::Encoding::kRlePerClass},
       {v1::SegmentParams::RAW_INDEX, SegmentParams::Encoding::kRawIndex}},
      &segment.encoding);
  status.Update(Translate(
      "params.output_size", params.output_size(),
      {{v1::SegmentParams::OUTPUT_SIZE_UNSPECIFIED,
        SegmentParams::OutputSize::kOriginal},
       {v1::SegmentParams::ORIGINAL, SegmentParams::OutputSize::kOriginal},
       {v1::SegmentParams::MODEL, SegmentParams::OutputSize::kModel}},
      &segment.output_size));
  return status;
}

}  // namespace sfmamba::rpc
