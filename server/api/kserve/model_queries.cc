#include "server/api/kserve/model_queries.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "inference/model_config.pb.h"
#include "model/config.h"
#include "server/api/kserve/published_model.h"
#include "server/errors/reasons.h"
#include "server/observability/metrics.h"
#include "server/observability/model_metrics.h"
#include "server/shares/priority.h"

namespace sfmamba::kserve {
namespace {

using observability::InferenceStatistics;
using observability::RequestRecord;
using prediction::TransportEnvironment;

constexpr char kServerName[] = "sfmamba";
constexpr const char* kExtensions[] = {
    "classification",      "model_repository",   "schedule_policy",
    "model_configuration", "binary_tensor_data", "parameters",
    "statistics",
};
constexpr char kPlatform[] = "sfmamba";
// The priority of requests that set no priority. The highest priority is 1.
constexpr int kDefaultPriority = 2;

void Describe(const ModelTensor& tensor,
              inference::ModelMetadataResponse::TensorMetadata* metadata) {
  metadata->set_name(std::string(tensor.name));
  metadata->set_datatype(std::string(tensor.datatype));
  metadata->add_shape(-1);
  metadata->mutable_shape()->Add(tensor.dims.begin(), tensor.dims.end());
}

void Describe(const InferenceStatistics::Sum& sum,
              inference::StatisticDuration* duration) {
  duration->set_count(sum.count);
  duration->set_ns(absl::ToInt64Nanoseconds(sum.time));
}

void DescribeBatching(const batching::Executor& executor,
                      absl::Duration default_timeout,
                      inference::ModelDynamicBatching* batching) {
  batching->set_max_queue_delay_microseconds(
      absl::ToInt64Microseconds(executor.options().batch.max_queue_delay));
  batching->set_priority_levels(server::kPriorityCount);
  batching->set_default_priority_level(kDefaultPriority);
  auto* queue = batching->mutable_default_queue_policy();
  queue->set_default_timeout_microseconds(
      absl::ToInt64Microseconds(default_timeout));
  queue->set_allow_timeout_override(true);
  queue->set_max_queue_size(executor.queue_limits().items);
}

ModelTensor InputOf(const PublishedModel& model,
                    const model::ModelConfig& config) {
  return model.encoded ? EncodedInput() : kserve::InputOf(config);
}

// Returns the maximum number of images in a request. A class map has the size
// of its image, and all class maps in a tensor must have the same size. But the
// encoded files in a request may have different sizes. A segmenter therefore
// accepts only one encoded file per request.
int MostImages(const PublishedModel& model, const model::ModelConfig& config,
               int max_images) {
  const bool maps = config.task == model::VisionTask::kSegmentation;
  return model.encoded && maps ? 1 : max_images;
}

// Fills in a model's name, version and tensors. Returns UNAVAILABLE if the
// model is not READY.
absl::Status DescribeMetadata(const PublishedModel& model,
                              inference::ModelMetadataResponse* metadata) {
  const auto loaded = model.version->Loaded();
  if (!loaded.ok()) return loaded.status();
  const model::ModelConfig& config = (*loaded)->directory.config;
  metadata->set_name(model.name());
  metadata->add_versions(absl::StrCat(model.version->number()));
  metadata->set_platform(kPlatform);
  Describe(InputOf(model, config), metadata->add_inputs());
  for (const ModelTensor& tensor : OutputsOf(config)) {
    Describe(tensor, metadata->add_outputs());
  }
  return absl::OkStatus();
}

// Fills in the model's name, tensors and batching settings. Returns UNAVAILABLE
// if the model is not READY. `max_images` is the image limit of a request.
// `default_timeout` is the default time that a request may wait in the queue.
absl::Status DescribeConfig(const PublishedModel& model, int max_images,
                            absl::Duration default_timeout,
                            inference::ModelConfig* config) {
  const auto loaded = model.version->Loaded();
  if (!loaded.ok()) return loaded.status();
  const repository::ModelDirectory& directory = (*loaded)->directory;
  config->set_name(model.name());
  config->set_platform(kPlatform);
  config->set_backend(kPlatform);
  config->mutable_version_policy()->mutable_latest()->set_num_versions(1);
  config->set_max_batch_size(
      std::min(directory.batch.max_batch_size,
               MostImages(model, directory.config, max_images)));
  const ModelTensor taken = InputOf(model, directory.config);
  inference::ModelInput* input = config->add_input();
  input->set_name(std::string(taken.name));
  input->set_data_type(taken.type);
  input->set_format(model.encoded ? inference::ModelInput::FORMAT_NONE
                                  : inference::ModelInput::FORMAT_NCHW);
  input->mutable_dims()->Add(taken.dims.begin(), taken.dims.end());
  for (const ModelTensor& tensor : OutputsOf(directory.config)) {
    inference::ModelOutput* output = config->add_output();
    output->set_name(std::string(tensor.name));
    output->set_data_type(tensor.type);
    output->mutable_dims()->Add(tensor.dims.begin(), tensor.dims.end());
    if (tensor.name == kLogits) output->set_label_filename("labels.txt");
  }
  inference::ModelInstanceGroup* group = config->add_instance_group();
  group->set_name(model.name());
  group->set_count(1);
  group->set_kind(absl::StartsWith((*loaded)->executor->device(), "cpu")
                      ? inference::ModelInstanceGroup::KIND_CPU
                      : inference::ModelInstanceGroup::KIND_GPU);
  DescribeBatching(*(*loaded)->executor, default_timeout,
                   config->mutable_dynamic_batching());
  // The empty transaction policy tells clients that each request has exactly
  // one response, because the policy's field `decoupled` is false.
  config->mutable_model_transaction_policy();
  (*config->mutable_parameters())["precision"].set_string_value(
      std::string(repository::PrecisionName((*loaded)->precision)));
  return absl::OkStatus();
}

// Fills in the statistics of a model. They contain the numbers of requests,
// images and batches since the start of the server, and the total durations of
// the steps of a request, such as waiting in the queue.
void DescribeStatistics(const PublishedModel& model,
                        inference::ModelStatistics* statistics) {
  const InferenceStatistics::Snapshot sums =
      model.version->metrics()->statistics().Get();
  statistics->set_name(model.name());
  statistics->set_version(absl::StrCat(model.version->number()));
  statistics->set_last_inference(absl::ToUnixMillis(sums.last));
  statistics->set_inference_count(sums.images);
  statistics->set_execution_count(sums.batches);
  inference::InferStatistics* requests = statistics->mutable_inference_stats();
  Describe(sums.success, requests->mutable_success());
  Describe(sums.fail, requests->mutable_fail());
  Describe(sums.queue, requests->mutable_queue());
  Describe(sums.input, requests->mutable_compute_input());
  Describe(sums.infer, requests->mutable_compute_infer());
  Describe(sums.output, requests->mutable_compute_output());
  for (const auto& [images, time] : sums.by_batch_size) {
    inference::InferBatchStatistics* batch = statistics->add_batch_stats();
    batch->set_batch_size(images);
    Describe(time, batch->mutable_compute_infer());
    // Image decoding and response encoding happen outside of batches, so their
    // times stay 0.
    batch->mutable_compute_input()->set_count(time.count);
    batch->mutable_compute_output()->set_count(time.count);
  }
}

// Returns the requested model.
template <typename Request>
absl::StatusOr<PublishedModel> Find(const TransportEnvironment& environment,
                                    const Request& request) {
  return FindModel(environment, request.name(), request.version(), "name");
}

}  // namespace

void DescribeServer(const std::string& version,
                    inference::ServerMetadataResponse* metadata) {
  metadata->set_name(kServerName);
  metadata->set_version(version);
  for (const char* extension : kExtensions) metadata->add_extensions(extension);
}

absl::Status IsReady(const TransportEnvironment& environment,
                     const inference::ModelReadyRequest& request,
                     inference::ModelReadyResponse* ready) {
  const auto model = Find(environment, request);
  ready->set_ready(model.ok() && model->version->Loaded().ok());
  // Clients poll for models that will appear later. A missing model is
  // therefore no error, and `ready` is false.
  return absl::IsNotFound(model.status()) ? absl::OkStatus() : model.status();
}

absl::Status Metadata(const TransportEnvironment& environment,
                      const inference::ModelMetadataRequest& request,
                      inference::ModelMetadataResponse* metadata,
                      RequestRecord* record) {
  const auto model = Find(environment, request);
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  return DescribeMetadata(*model, metadata);
}

absl::Status Config(const TransportEnvironment& environment,
                    const inference::ModelConfigRequest& request,
                    inference::ModelConfigResponse* config,
                    RequestRecord* record) {
  const auto model = Find(environment, request);
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  return DescribeConfig(*model, environment.limits.max_images,
                        environment.default_deadline, config->mutable_config());
}

absl::Status Statistics(const TransportEnvironment& environment,
                        const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse* statistics,
                        RequestRecord* record) {
  if (request.name().empty()) {
    record->set_no_model();
    for (const PublishedModel& model : ListModels(environment)) {
      if (!model.version->Loaded().ok()) continue;
      DescribeStatistics(model, statistics->add_model_stats());
    }
    return absl::OkStatus();
  }
  const auto model = Find(environment, request);
  if (!model.ok()) return model.status();
  record->set_model(model->version->name(), model->version->metrics());
  const auto loaded = model->version->Loaded();
  if (!loaded.ok()) return loaded.status();
  DescribeStatistics(*model, statistics->add_model_stats());
  return absl::OkStatus();
}

absl::Status Index(const TransportEnvironment& environment,
                   const inference::RepositoryIndexRequest& request,
                   inference::RepositoryIndexResponse* index, RequestRecord*) {
  if (!request.repository_name().empty()) {
    return server::WrongText("repository_name", request.repository_name(),
                             "none: there is one repository");
  }
  for (const PublishedModel& model : ListModels(environment)) {
    if (request.ready() && !model.version->Loaded().ok()) continue;
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
