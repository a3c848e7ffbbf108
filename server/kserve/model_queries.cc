#include "server/kserve/model_queries.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"
#include "server/kserve/describe_model.h"
#include "server/kserve/published_model.h"
#include "server/observability/metrics.h"

namespace sfmamba::kserve {
namespace {

using observability::RequestRecord;

constexpr char kServerName[] = "sfmamba";
constexpr const char* kExtensions[] = {
    "classification",      "model_repository",   "schedule_policy",
    "model_configuration", "binary_tensor_data", "parameters",
    "statistics",
};

}  // namespace

void DescribeServer(absl::string_view version,
                    inference::ServerMetadataResponse* metadata) {
  metadata->set_name(kServerName);
  metadata->set_version(std::string(version));
  for (const char* extension : kExtensions) metadata->add_extensions(extension);
}

absl::Status ModelQueries::Ready(const inference::ModelReadyRequest& asked,
                                 inference::ModelReadyResponse* ready) const {
  const auto model = FindModel(env_, asked.name(), asked.version(), "name");
  ready->set_ready(model.ok() && model->version->Loaded().ok());
  // Clients poll for a model that is about to appear: it is not ready.
  return absl::IsNotFound(model.status()) ? absl::OkStatus() : model.status();
}

absl::Status ModelQueries::Metadata(
    const inference::ModelMetadataRequest& asked,
    inference::ModelMetadataResponse* metadata, RequestRecord* record) const {
  const auto model = FindModel(env_, asked.name(), asked.version(), "name");
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  return DescribeMetadata(*model, metadata);
}

absl::Status ModelQueries::Config(const inference::ModelConfigRequest& asked,
                                  inference::ModelConfigResponse* config,
                                  RequestRecord* record) const {
  const auto model = FindModel(env_, asked.name(), asked.version(), "name");
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  return DescribeConfig(*model, env_.limits.max_images, env_.default_deadline,
                        config->mutable_config());
}

absl::Status ModelQueries::Statistics(
    const inference::ModelStatisticsRequest& asked,
    inference::ModelStatisticsResponse* statistics,
    RequestRecord* record) const {
  if (asked.name().empty()) {
    record->set_no_model();
    for (const PublishedModel& model : ListModels(env_)) {
      if (!model.version->Loaded().ok()) continue;
      DescribeStatistics(model, statistics->add_model_stats());
    }
    return absl::OkStatus();
  }
  const auto model = FindModel(env_, asked.name(), asked.version(), "name");
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  const auto loaded = model->version->Loaded();
  if (!loaded.ok()) return loaded.status();
  DescribeStatistics(*model, statistics->add_model_stats());
  return absl::OkStatus();
}

absl::Status ModelQueries::Index(const inference::RepositoryIndexRequest& asked,
                                 inference::RepositoryIndexResponse* index,
                                 RequestRecord* record) const {
  record->set_no_model();
  if (!asked.repository_name().empty()) {
    return server::WrongText("repository_name", asked.repository_name(),
                             "none: there is one repository");
  }
  for (const PublishedModel& model : ListModels(env_)) {
    if (asked.ready() && !model.version->Loaded().ok()) continue;
    auto* entry = index->add_models();
    entry->set_name(model.name());
    entry->set_version(absl::StrCat(model.version->number()));
    entry->set_state(
        std::string(observability::ModelStateName(model.version->state())));
    entry->set_reason(model.version->state_reason());
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::kserve
