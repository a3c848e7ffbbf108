#include "server/repository/model_version.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"
#include "server/repository/model_name.h"

namespace sfmamba::repository {

absl::string_view TaskName(model::VisionTask task) {
  switch (task) {
    case model::VisionTask::kClassification:
      return "classification";
    case model::VisionTask::kDetection:
      return "detection";
    case model::VisionTask::kSegmentation:
      return "segmentation";
  }
  return "";  // Unreachable, because all cases are handled.
}

absl::string_view PrecisionName(model::Precision precision) {
  switch (precision) {
    case model::Precision::kFloat32:
      return "FP32";
    case model::Precision::kBFloat16:
      return "BF16";
    case model::Precision::kFloat16:
      return "FP16";
    case model::Precision::kInt8:
      return "INT8";
  }
  return "";
}

ModelVersion::ModelVersion(std::string id, int64_t number, VersionPath path,
                           std::optional<ModelPurpose> purpose,
                           std::shared_ptr<observability::ModelMetrics> metrics)
    : id_(std::move(id)),
      number_(number),
      path_(std::move(path)),
      purpose_(purpose),
      metrics_(std::move(metrics)) {}

std::string ModelVersion::name() const { return VersionName(id_, number_); }

std::string ModelVersion::health_name() const {
  return absl::StrCat("models/", id_);
}

observability::ModelState ModelVersion::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

std::string ModelVersion::state_reason() const {
  absl::MutexLock lock(&mu_);
  return reason_;
}

std::vector<std::string> ModelVersion::labels() const {
  absl::MutexLock lock(&mu_);
  return labels_;
}

absl::StatusOr<std::shared_ptr<LoadedModel>> ModelVersion::Loaded() const {
  absl::MutexLock lock(&mu_);
  if (loaded_ != nullptr) return loaded_;
  return server::ModelNotReady(name(), observability::ModelStateName(state_),
                               reason_);
}

void ModelVersion::SetReady(std::shared_ptr<LoadedModel> loaded) {
  absl::MutexLock lock(&mu_);
  loaded_ = std::move(loaded);
  reason_.clear();
  state_ = observability::ModelState::kReady;
}

void ModelVersion::SetUnavailable(absl::string_view reason) {
  absl::MutexLock lock(&mu_);
  reason_ = std::string(reason);
  state_ = observability::ModelState::kUnavailable;
}

void ModelVersion::SetUnloading() {
  absl::MutexLock lock(&mu_);
  state_ = observability::ModelState::kUnloading;
}

void ModelVersion::SetLabels(std::vector<std::string> labels) {
  absl::MutexLock lock(&mu_);
  labels_ = std::move(labels);
}

void ModelVersion::SetReloadFailed(absl::string_view reason) {
  absl::MutexLock lock(&mu_);
  reason_ = std::string(reason);
}

}  // namespace sfmamba::repository
