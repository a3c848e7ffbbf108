#include "server/rpc/to_proto.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/proto_duration.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {
namespace {

void ToProto(const model::Box& box, v1::BoundingBox* proto) {
  proto->set_x_min(box.x1);
  proto->set_y_min(box.y1);
  proto->set_x_max(box.x2);
  proto->set_y_max(box.y2);
}

void ToProto(prediction::CocoRle rle, v1::CocoRle* proto) {
  proto->set_height(rle.height);
  proto->set_width(rle.width);
  proto->set_counts(std::move(rle.counts));
}

// Sets the member of `oneof mask` that the alternative belongs to.
struct SetMask {
  v1::Detection* proto;

  void operator()(std::monostate) const {}
  void operator()(prediction::CocoRle& rle) const {
    ToProto(std::move(rle), proto->mutable_rle());
  }
  void operator()(prediction::PngCrop& png) const {
    proto->set_png_crop(std::move(png.bytes));
  }
};

// Sets the member of `oneof map` that the alternative belongs to.
struct SetMap {
  v1::SegmentResult* proto;

  void operator()(prediction::IndexPng& png) const {
    proto->set_png_index(std::move(png.bytes));
  }
  void operator()(std::vector<prediction::ClassRle>& classes) const {
    v1::ClassRleList* list = proto->mutable_rle();
    for (prediction::ClassRle& entry : classes) {
      v1::ClassRle* rle = list->add_classes();
      rle->set_class_id(entry.class_id);
      rle->set_label(entry.label.data(), entry.label.size());
      ToProto(std::move(entry.rle), rle->mutable_rle());
    }
  }
  void operator()(prediction::RawIndexMap& map) const {
    v1::RawIndexMap* raw = proto->mutable_raw();
    raw->set_width(proto->width());
    raw->set_height(proto->height());
    raw->set_bytes_per_pixel(map.bytes_per_pixel);
    raw->set_data(std::move(map.data));
  }
};

}  // namespace

void ToProto(prediction::ClassificationAnswer answer,
             v1::ClassifyResult* result) {
  for (const prediction::Category& category : answer.categories) {
    v1::Category* proto = result->add_categories();
    proto->set_class_id(category.class_id);
    proto->set_label(category.label.data(), category.label.size());
    proto->set_score(category.score);
  }
  result->mutable_embedding()->Add(answer.embedding.begin(),
                                   answer.embedding.end());
  if (!answer.heat_map.has_value()) return;
  prediction::HeatMap& map = *answer.heat_map;
  v1::HeatMap* proto = result->mutable_heat_map();
  proto->set_class_id(map.class_id);
  proto->set_width(map.width);
  proto->set_height(map.height);
  proto->mutable_values()->Add(map.values.begin(), map.values.end());
  proto->set_png(std::move(map.png));
  proto->set_low(map.low);
  proto->set_high(map.high);
}

void ToProto(prediction::DetectionAnswer answer, v1::DetectResult* result) {
  result->set_image_width(answer.picture.width);
  result->set_image_height(answer.picture.height);
  for (prediction::DetectedObject& object : answer.objects) {
    v1::Detection* proto = result->add_detections();
    ToProto(object.box, proto->mutable_box());
    proto->set_class_id(object.class_id);
    proto->set_label(object.label.data(), object.label.size());
    proto->set_score(object.score);
    std::visit(SetMask{proto}, object.mask);
    if (!object.crop.has_value()) continue;
    v1::ClassifyResult* crop = proto->mutable_crop();
    if (object.crop->error.ok()) {
      ToProto(std::move(object.crop->answer), crop);
    } else {
      *crop->mutable_error() = ToRpcStatus(object.crop->error);
    }
  }
}

void ToProto(prediction::SegmentationAnswer answer, v1::SegmentResult* result) {
  result->set_width(answer.width);
  result->set_height(answer.height);
  std::visit(SetMap{result}, answer.map);
  for (const prediction::ClassArea& area : answer.areas) {
    v1::ClassArea* proto = result->add_areas();
    proto->set_class_id(area.class_id);
    proto->set_label(area.label.data(), area.label.size());
    proto->set_pixel_count(area.pixel_count);
    proto->set_fraction(area.fraction);
  }
  result->set_confidence_png(std::move(answer.confidence_png));
}

void ToProto(const prediction::Timing& timing, v1::Timing* result) {
  base::ToProto(timing.decode, result->mutable_decode());
  base::ToProto(timing.preprocess, result->mutable_preprocess());
  base::ToProto(timing.batch.queue, result->mutable_queue());
  base::ToProto(timing.batch.inference, result->mutable_inference());
  base::ToProto(timing.postprocess, result->mutable_postprocess());
  base::ToProto(timing.total, result->mutable_total());
  result->set_batch_size(timing.batch.batch_size);
  result->set_padded_batch_size(timing.batch.padded_batch_size);
  result->set_fold_factor(timing.batch.fold_factor);
  result->set_bucket(timing.batch.size_class);
  result->set_device(timing.device);
}

}  // namespace sfmamba::rpc
