#include "server/api/admin/admin_methods.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/api/change.h"
#include "server/api/vision/describe_model.h"
#include "server/batching/executor.h"
#include "server/call/call.h"
#include "server/errors/reasons.h"
#include "server/observability/memory_limit.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/repository/model_repository.h"
#include "server/security/caller.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::api {
namespace {

using admin::ModelChanges;
using call::About;
using call::AnswerAtOnce;
using observability::Method;
using prediction::TransportEnvironment;
using security::Scope;

void ToProto(const repository::ModelVersion& version,
             v1::ServedVersion* served) {
  api::ToProto(version, /*with_classes=*/false, served->mutable_model());
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

void ToProto(const repository::ModelRepository& repository,
             google::protobuf::RepeatedPtrField<v1::ServedModel>* models) {
  v1::ServedModel* model = nullptr;
  for (const auto& version : repository.List()) {
    if (model == nullptr || model->id() != version->id()) {
      model = models->Add();
      model->set_id(version->id());
    }
    ToProto(*version, model->add_versions());
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

// Fills `profile` with the batch times of a version. Returns UNAVAILABLE with
// reason MODEL_NOT_READY if the version is not READY.
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

// Appends all versions of the model `name` to `response`, in ascending order.
template <typename Response>
void FillVersions(const repository::ModelRepository& repository,
                  const std::string& name, Response* response) {
  const auto target = admin::ParseTarget(name, "name");
  if (!target.ok()) return;
  for (const auto& version : repository.List()) {
    if (version->id() != target->id) continue;
    api::ToProto(*version, /*with_classes=*/false, response->add_versions());
  }
}

call::Handler LoadModel(ModelChanges* changes) {
  return Change<v1::LoadModelRequest, v1::LoadModelResponse>(
      [changes](const auto&, const auto& who, const auto& request, auto done) {
        changes->Load(who, request.name(), "name",
                      request.has_batching()
                          ? std::make_optional(request.batching())
                          : std::nullopt,
                      std::move(done));
      },
      [](const auto& repository, const auto& request, auto* response) {
        FillVersions(repository, request.name(), response);
      });
}

call::Handler UnloadModel(ModelChanges* changes) {
  return Change<v1::UnloadModelRequest, v1::UnloadModelResponse>(
      [changes](const auto&, const auto& who, const auto& request, auto done) {
        changes->Unload(who, request.name(), "name", std::move(done));
      },
      [](const auto& repository, const auto& request, auto* response) {
        FillVersions(repository, request.name(), response);
      });
}

call::Handler SetVersionLabel(ModelChanges* changes) {
  return Change<v1::SetVersionLabelRequest, v1::SetVersionLabelResponse>(
      [changes](const auto&, const auto& who, const auto& request, auto done) {
        done(changes->SetLabel(who, request.model(), request.label(),
                               request.version()));
      },
      [](const auto& repository, const auto& request, auto* response) {
        FillVersions(repository, request.model(), response);
      });
}

call::Handler UpdateRuntimeSettings(ModelChanges* changes,
                                    admin::RuntimeSettings* settings) {
  return Change<v1::UpdateRuntimeSettingsRequest, v1::RuntimeSettings>(
      [changes, settings](const auto&, const auto& who, const auto& request,
                          auto done) {
        const absl::Status status = settings->Update(request);
        changes->Log(who, "settings", request.ShortDebugString(), status);
        done(status);
      },
      [settings](const auto&, const auto&, auto* response) {
        *response = settings->Get();
      });
}

void SetCanaryShare(const TransportEnvironment&, Method,
                    std::unique_ptr<call::Call> call) {
  call->Finish(server::Removed("SetCanaryShare",
                               "divide requests between two Deployments by a "
                               "weighted route"),
               nullptr);
}

call::Handler GetServerInfo(v1::ServerInfo build,
                            const admin::RuntimeSettings* settings) {
  return AnswerAtOnce<v1::GetServerInfoRequest, v1::ServerInfo>(
      About::kServer, [build = std::move(build), settings](
                          const TransportEnvironment& environment, const auto&,
                          auto* info, auto*) {
        *info = build;
        ToProto(environment.repository, info->mutable_models());
        ToProto(environment.memory, info->mutable_memory());
        *info->mutable_settings() = settings->Get();
        return absl::OkStatus();
      });
}

absl::Status GetBatchProfile(const TransportEnvironment& environment,
                             const v1::GetBatchProfileRequest& request,
                             v1::BatchProfile* profile,
                             observability::RequestRecord* record) {
  const auto version = environment.repository.Find(request.name(), "name");
  if (!version.ok()) return version.status();
  record->set_model((*version)->name(), (*version)->metrics());
  return ToProto(**version, profile);
}

}  // namespace

std::vector<call::Method> AdminMethods(v1::ServerInfo build,
                                       ModelChanges* changes,
                                       admin::RuntimeSettings* settings) {
  return {
      {"sfmamba.v1.AdminService/LoadModel", "", Scope::kAdmin,
       Method::kLoadModel, LoadModel(changes)},
      {"sfmamba.v1.AdminService/UnloadModel", "", Scope::kAdmin,
       Method::kUnloadModel, UnloadModel(changes)},
      {"sfmamba.v1.AdminService/SetVersionLabel", "", Scope::kAdmin,
       Method::kSetVersionLabel, SetVersionLabel(changes)},
      {"sfmamba.v1.AdminService/SetCanaryShare", "", Scope::kAdmin,
       std::nullopt, SetCanaryShare},
      {"sfmamba.v1.AdminService/GetServerInfo", "", Scope::kAdmin,
       Method::kGetServerInfo, GetServerInfo(std::move(build), settings)},
      {"sfmamba.v1.AdminService/GetBatchProfile", "", Scope::kAdmin,
       Method::kGetBatchProfile,
       AnswerAtOnce<v1::GetBatchProfileRequest, v1::BatchProfile>(
           About::kServer, GetBatchProfile)},
      {"sfmamba.v1.AdminService/UpdateRuntimeSettings", "", Scope::kAdmin,
       Method::kUpdateRuntimeSettings,
       UpdateRuntimeSettings(changes, settings)},
  };
}

}  // namespace sfmamba::api
