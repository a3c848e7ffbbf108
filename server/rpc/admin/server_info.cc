#include "server/rpc/admin/server_info.h"

#include <memory>

#include "absl/time/time.h"
#include "base/proto_duration.h"
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

}  // namespace sfmamba::rpc
