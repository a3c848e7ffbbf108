#include "server/rpc/admin/describe_server.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "server/batching/executor.h"
#include "server/observability/memory_limit.h"
#include "server/rpc/describe_model.h"

namespace sfmamba::rpc {
namespace {

void Describe(const repository::ModelVersion& version,
              v1::ServedVersion* served) {
  ToProto(version, /*with_classes=*/false, served->mutable_model());
  const auto loaded = version.Loaded();
  if (!loaded.ok()) return;
  served->set_device((*loaded)->executor->device());
  served->set_waiting_images(version.metrics()->waiting_items());
  const absl::Duration wait = version.metrics()->predicted_wait();
  if (wait >= absl::ZeroDuration()) {
    base::ToProto(wait, served->mutable_predicted_wait());
  }
}

void ToProto(const batching::KeyProfile& profile,
             v1::BatchProfile::SizeClass* size_class) {
  size_class->set_height(profile.key.height);
  size_class->set_width(profile.key.width);
  size_class->set_image_type(profile.key.type == batching::ImageType::kUint8
                                 ? v1::BatchProfile::UINT8
                                 : v1::BatchProfile::FLOAT32);
  for (const auto& [images, point] : profile.curve.Points()) {
    v1::BatchProfile::BatchTime* time = size_class->add_times();
    time->set_images(images);
    base::ToProto(point.median, time->mutable_median());
    base::ToProto(point.p95, time->mutable_p95());
  }
  for (const int images : profile.curve.efficient_sizes()) {
    size_class->add_efficient_sizes(images);
  }
  size_class->set_pace(profile.curve.pace());
  size_class->set_arrivals_per_second(
      absl::FDivDuration(absl::Seconds(1), profile.gap));
}

}  // namespace

void ToProto(const repository::ModelRepository& repository,
             const std::string& id,
             google::protobuf::RepeatedPtrField<v1::Model>* versions) {
  for (const auto& version : repository.List()) {
    if (version->id() != id) continue;
    ToProto(*version, /*with_classes=*/false, versions->Add());
  }
}

void ToProto(const repository::ModelRepository& repository,
             google::protobuf::RepeatedPtrField<v1::ServedModel>* models) {
  v1::ServedModel* model = nullptr;
  for (const auto& version : repository.List()) {
    if (model == nullptr || model->id() != version->id()) {
      model = models->Add();
      model->set_id(version->id());
      model->set_canary_percent(repository.CanaryShare(version->id()));
    }
    Describe(*version, model->add_versions());
  }
}

void ToProto(const server::MemoryBudget& budget, v1::MemoryUse* memory) {
  int64_t held = 0;
  for (int i = 0; i < server::kMemoryUseCount; ++i) {
    held += budget.held(server::MemoryUse(i));
  }
  memory->set_requests_bytes(held);
  memory->set_requests_limit_bytes(budget.bytes());
  memory->set_resident_bytes(observability::ResidentMemory());
  memory->set_limit_bytes(observability::MemoryLimit());
}

absl::Status ToProto(const repository::ModelVersion& version,
                     v1::BatchProfile* profile) {
  const absl::StatusOr<std::shared_ptr<repository::LoadedModel>> model =
      version.Loaded();
  if (!model.ok()) return model.status();
  const batching::Executor& executor = *(*model)->executor;
  profile->set_model(version.name());
  profile->set_device(executor.device());
  profile->set_max_batch_size(executor.options().batch.max_batch_size);
  for (const batching::KeyProfile& key : executor.KeyProfiles()) {
    ToProto(key, profile->add_size_classes());
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rpc
