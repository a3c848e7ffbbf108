#include "server/api/vision/describe_model.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/config.h"
#include "server/errors/reasons.h"
#include "server/repository/model_name.h"

namespace sfmamba::api {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// The maximum number of bytes of a rejected token in an error message.
constexpr size_t kMaxShown = 64;

// ModelState and v1::Model::State have the same value names.
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
    const absl::StatusOr<repository::ModelName> last =
        repository::ParseModelName(request.page_token(), "page_token");
    if (!last.ok() || last->version == 0) {
      return server::InvalidField(
          "page_token",
          absl::StrCat(
              "got \"",
              absl::CHexEscape(
                  absl::string_view(request.page_token()).substr(0, kMaxShown)),
              "\", expected the next_page_token of an earlier answer"));
    }
    // Finds the first version that comes after the previous page in the order
    // of `all`. The last version of the previous page is not searched for,
    // because it may no longer exist.
    from = std::partition_point(all.begin(), all.end(), [&](const auto& at) {
      return std::forward_as_tuple(at->id(), at->number()) <=
             std::tie(last->id, last->version);
    });
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

}  // namespace sfmamba::api
