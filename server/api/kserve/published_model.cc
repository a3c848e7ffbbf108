#include "server/api/kserve/published_model.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

constexpr char kEncodedSuffix[] = "_encoded";

absl::StatusOr<std::shared_ptr<repository::ModelVersion>> FindVersion(
    const repository::ModelRepository& repository, absl::string_view id,
    absl::string_view version, absl::string_view field) {
  const std::string full =
      version.empty() ? absl::StrCat("models/", id)
                      : absl::StrCat("models/", id, "/versions/", version);
  return repository.Find(full, field);
}

// If a model has at most this many classes, its class maps have one byte per
// pixel. The byte 255 means "ignore".
constexpr int kMaxByteClasses = 255;

ModelTensor Fp32(absl::string_view name, std::vector<int64_t> dims) {
  return {name, "FP32", inference::TYPE_FP32, std::move(dims)};
}

ModelTensor Int32(absl::string_view name, std::vector<int64_t> dims) {
  return {name, "INT32", inference::TYPE_INT32, std::move(dims)};
}

}  // namespace

std::string PublishedModel::name() const {
  return absl::StrCat(version->id(), encoded ? kEncodedSuffix : "");
}

absl::StatusOr<PublishedModel> FindModel(
    const prediction::TransportEnvironment& environment, absl::string_view name,
    absl::string_view version, absl::string_view field) {
  if (name.empty()) {
    return server::InvalidField(field, "got no name, expected a model's");
  }
  // A name in this protocol is a model's id. Find() would also accept the form
  // "models/{id}", so names with a slash are refused here.
  if (absl::StrContains(name, '/')) return server::ModelNotFound(name);
  const repository::ModelRepository& repository = environment.repository;
  auto found = FindVersion(repository, name, version, field);
  if (found.ok()) return PublishedModel{*std::move(found)};
  absl::string_view id = name;
  // `name` may be the second name "{id}_encoded" of a model. But if a model has
  // the id `name`, this model takes precedence, even if it does not have the
  // requested version.
  const bool may_be_second =
      environment.encoded_models && absl::ConsumeSuffix(&id, kEncodedSuffix) &&
      !FindVersion(repository, name, /*version=*/"", field).ok();
  if (!may_be_second) return found.status();
  auto second = FindVersion(repository, id, version, field);
  if (!second.ok()) return found.status();
  return PublishedModel{*std::move(second), /*encoded=*/true};
}

std::vector<PublishedModel> ListModels(
    const prediction::TransportEnvironment& environment) {
  std::vector<PublishedModel> models;
  for (const auto& version : environment.repository.List()) {
    models.push_back({version});
    if (!environment.encoded_models) continue;
    PublishedModel second{version, /*encoded=*/true};
    const auto own = FindModel(environment, second.name(), "", "name");
    if (own.ok() && own->encoded) models.push_back(std::move(second));
  }
  return models;
}

ModelTensor InputOf(const model::ModelConfig& config) {
  const bool any_size = config.resize == model::Resize::kKeepRatio;
  const int64_t side = any_size ? -1 : config.image_size;
  return Fp32(kInputName, {3, side, side});
}

ModelTensor EncodedInput() {
  return {kInputName, "BYTES", inference::TYPE_STRING, {1}};
}

std::vector<ModelTensor> OutputsOf(const model::ModelConfig& config) {
  switch (config.task) {
    case model::VisionTask::kClassification:
      return {Fp32(kLogits, {config.num_classes}),
              Fp32(kEmbedding, {config.embedding_width()})};
    case model::VisionTask::kDetection: {
      const int64_t most = config.detector.max_detections;
      return {Int32(kNumDetections, {1}), Fp32(kBoxes, {most, 4}),
              Fp32(kScores, {most}), Int32(kClasses, {most})};
    }
    case model::VisionTask::kSegmentation:
      if (config.num_classes <= kMaxByteClasses) {
        return {{kClassMap, "UINT8", inference::TYPE_UINT8, {-1, -1}}};
      }
      return {Int32(kClassMap, {-1, -1})};
  }
  return {};
}

}  // namespace sfmamba::kserve
