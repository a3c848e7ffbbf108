#include "server/prediction/convert_detections.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "server/image/png_encoder.h"
#include "server/image/rle.h"

namespace sfmamba::prediction {
namespace {

void ToProto(const model::Box& box, const image::PictureFrame& frame,
             v1::BoundingBox* proto) {
  const float width = frame.picture.width, height = frame.picture.height;
  proto->set_x_min(std::clamp(frame.left + box.x1, 0.f, width));
  proto->set_y_min(std::clamp(frame.top + box.y1, 0.f, height));
  proto->set_x_max(std::clamp(frame.left + box.x2, 0.f, width));
  proto->set_y_max(std::clamp(frame.top + box.y2, 0.f, height));
}

// The box rounded outwards, at least one pixel each way.
image::PixelRect Outwards(const v1::BoundingBox& box) {
  image::PixelRect rect;
  rect.left = std::floor(box.x_min());
  rect.top = std::floor(box.y_min());
  rect.width = std::max<int>(1, std::ceil(box.x_max()) - rect.left);
  rect.height = std::max<int>(1, std::ceil(box.y_max()) - rect.top);
  return rect;
}

// The part of `mask`, of what the model saw, inside `rect` of the picture.
absl::StatusOr<std::string> EncodePngCrop(const model::InstanceMask& mask,
                                          const image::PictureFrame& frame,
                                          const image::PixelRect& rect) {
  // The mask's place inside the rectangle.
  const int left = frame.left + mask.left - rect.left;
  const int top = frame.top + mask.top - rect.top;
  const int begin = std::max(left, 0);
  const int end = std::min(left + mask.width, rect.width);
  return image::EncodeGreyPng(
      rect.width, rect.height, 1, [&](int y, uint8_t* row) {
        std::memset(row, 0, (rect.width + 7) / 8);
        if (y < top || y >= top + mask.height) return;
        const uint8_t* pixels = &mask.data[size_t{1} * (y - top) * mask.width];
        for (int x = begin; x < end; ++x) {
          if (pixels[x - left] != 0) row[x / 8] |= 0x80 >> x % 8;
        }
      });
}

absl::Status FillMask(const model::InstanceMask& mask,
                      const image::PictureFrame& frame,
                      v1::DetectParams::MaskEncoding encoding,
                      v1::Detection* detection) {
  if (encoding == v1::DetectParams::PNG_CROP) {
    absl::StatusOr<std::string> png =
        EncodePngCrop(mask, frame, Outwards(detection->box()));
    if (!png.ok()) return png.status();
    detection->set_png_crop(*std::move(png));
  } else {
    v1::CocoRle* rle = detection->mutable_rle();
    rle->set_height(frame.picture.height);
    rle->set_width(frame.picture.width);
    rle->set_counts(image::EncodeRle(mask, frame.left, frame.top,
                                     frame.picture.height,
                                     frame.picture.width));
  }
  return absl::OkStatus();
}

}  // namespace

model::DetectionOptions ToDetectionOptions(const v1::DetectParams& params) {
  model::DetectionOptions options;
  if (params.has_score_threshold()) {
    options.score_threshold = params.score_threshold();
  }
  if (params.has_nms_iou_threshold()) {
    options.nms_iou_threshold = params.nms_iou_threshold();
  }
  options.max_detections = params.max_detections();
  options.classes.assign(params.class_filter().begin(),
                         params.class_filter().end());
  std::sort(options.classes.begin(), options.classes.end());
  options.classes.erase(
      std::unique(options.classes.begin(), options.classes.end()),
      options.classes.end());
  options.class_agnostic_nms = params.class_agnostic_nms();
  return options;
}

absl::Status ToProto(const model::Detections& detections,
                     const image::PictureFrame& frame,
                     v1::DetectParams::MaskEncoding encoding,
                     const std::vector<std::string>& labels,
                     v1::DetectResult* result) {
  result->set_image_width(frame.picture.width);
  result->set_image_height(frame.picture.height);
  for (const model::Detection& detection : detections.detections) {
    v1::Detection* proto = result->add_detections();
    ToProto(detection.box, frame, proto->mutable_box());
    proto->set_class_id(detection.class_id);
    proto->set_label(labels[detection.class_id]);
    proto->set_score(detection.score);
    if (encoding == v1::DetectParams::MASK_ENCODING_UNSPECIFIED) continue;
    const absl::Status status =
        FillMask(detection.mask(), frame, encoding, proto);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::prediction
