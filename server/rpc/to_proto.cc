#include "server/rpc/to_proto.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "model/config.h"
#include "server/errors/reasons.h"
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

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

// The states have the same names.
v1::Model::State ToProto(observability::ModelState state) {
  v1::Model::State proto = v1::Model::STATE_UNSPECIFIED;
  v1::Model::State_Parse(std::string(observability::ModelStateName(state)),
                         &proto);
  return proto;
}

v1::Model::Task ToProto(model::VisionTask task) {
  switch (task) {
    case model::VisionTask::kClassification:
      return v1::Model::CLASSIFICATION;
    case model::VisionTask::kDetection:
      return v1::Model::DETECTION;
    case model::VisionTask::kSegmentation:
      return v1::Model::SEGMENTATION;
  }
  return v1::Model::TASK_UNSPECIFIED;
}

const char* ResizeName(model::Resize resize) {
  switch (resize) {
    case model::Resize::kCenterCrop:
      return "center_crop";
    case model::Resize::kStretch:
      return "stretch";
    case model::Resize::kKeepRatio:
      return "keep_ratio";
  }
  return "";
}

void ToProto(const model::ModelConfig& config, v1::InputSpec* input) {
  const bool keep_ratio = config.resize == model::Resize::kKeepRatio;
  auto* size = input->add_buckets();
  size->set_height(keep_ratio ? config.short_side : config.image_size);
  size->set_width(keep_ratio ? config.long_side : config.image_size);
  input->mutable_mean()->Add(config.mean.begin(), config.mean.end());
  input->mutable_std()->Add(config.std.begin(), config.std.end());
  input->set_resize(ResizeName(config.resize));
  input->set_channel_order("RGB");
  if (!keep_ratio) input->set_resize_size(config.resize_size());
}

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

void ToProto(const repository::ModelVersion& version, bool with_classes,
             v1::Model* model) {
  model->set_name(version.name());
  if (version.task().has_value()) model->set_task(ToProto(*version.task()));
  model->set_default_for_task(version.is_default());
  model->set_state(ToProto(version.state()));
  model->set_state_reason(version.state_reason());
  for (const std::string& label : version.labels()) {
    model->add_version_labels(label);
  }
  const absl::StatusOr<std::shared_ptr<repository::LoadedModel>> loaded =
      version.Loaded();
  if (!loaded.ok()) return;
  const repository::ModelDirectory& directory = (*loaded)->directory;
  ToProto(directory.config, model->mutable_input());
  model->set_max_batch_size(directory.batch.max_batch_size);
  model->set_weights_size_bytes(directory.weights_size);
  model->set_content_sha256(directory.weights_sha256);
  model->set_precision(
      std::string(repository::PrecisionName((*loaded)->precision)));
  model->set_variant(directory.config.variant);
  model->set_config_source(directory.config_source);
  model->set_class_count(directory.labels.size());
  const absl::Duration since_epoch = (*loaded)->load_time - absl::UnixEpoch();
  model->mutable_load_time()->set_seconds(absl::ToInt64Seconds(since_epoch));
  if (!with_classes) return;
  for (size_t i = 0; i < directory.labels.size(); ++i) {
    v1::ClassInfo* info = model->add_classes();
    info->set_class_id(i);
    info->set_label(directory.labels[i]);
  }
}

absl::Status FillPage(
    const v1::ListModelsRequest& request,
    const std::vector<std::shared_ptr<repository::ModelVersion>>& all,
    v1::ListModelsResponse* response) {
  if (request.page_size() < 0) {
    return server::InvalidField(
        "page_size",
        absl::StrCat("got ", request.page_size(), ", expected 0 or more"));
  }
  auto from = all.begin();
  if (!request.page_token().empty()) {
    from =
        std::find_if(all.begin(), all.end(), [&request](const auto& version) {
          return version->name() == request.page_token();
        });
    if (from == all.end()) {
      return server::InvalidField(
          "page_token", "expected the next_page_token of an earlier answer");
    }
    ++from;
  }
  const int size = request.page_size() == 0
                       ? kDefaultPageSize
                       : std::min(request.page_size(), kMaxPageSize);
  const auto to = from + std::min<ptrdiff_t>(size, all.end() - from);
  for (auto it = from; it != to; ++it) {
    ToProto(**it, /*with_classes=*/false, response->add_models());
  }
  if (to != all.end()) response->set_next_page_token((*(to - 1))->name());
  return absl::OkStatus();
}

}  // namespace sfmamba::rpc
