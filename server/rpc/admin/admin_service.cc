#include "server/rpc/admin/admin_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/api/vision/describe_model.h"
#include "server/batching/executor.h"
#include "server/errors/reasons.h"
#include "server/observability/memory_limit.h"
#include "server/observability/request_record.h"
#include "server/repository/model_repository.h"
#include "server/shares/memory_budget.h"
#include "sfmamba/v1/admin.pb.h"

namespace sfmamba::rpc {

using observability::Method;
using observability::RequestRecord;

namespace {

void Describe(const repository::ModelVersion& version,
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

void Describe(const batching::KeyProfile& profile,
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

// Says what is known now of all versions of model `id`, in ascending order.
void Describe(const repository::ModelRepository& repository,
              const std::string& id,
              google::protobuf::RepeatedPtrField<v1::Model>* versions) {
  for (const auto& version : repository.List()) {
    if (version->id() != id) continue;
    api::ToProto(*version, /*with_classes=*/false, versions->Add());
  }
}

// Says what is known now of all models: versions, devices and waiting images.
void Describe(const repository::ModelRepository& repository,
              google::protobuf::RepeatedPtrField<v1::ServedModel>* models) {
  v1::ServedModel* model = nullptr;
  for (const auto& version : repository.List()) {
    if (model == nullptr || model->id() != version->id()) {
      model = models->Add();
      model->set_id(version->id());
    }
    Describe(*version, model->add_versions());
  }
}

// What the process and its requests hold now.
void Describe(const server::MemoryBudget& budget, v1::MemoryUse* memory) {
  int64_t held = 0;
  for (int i = 0; i < server::kMemoryUseCount; ++i) {
    held += budget.held(server::MemoryUse(i));
  }
  memory->set_requests_bytes(held);
  memory->set_requests_limit_bytes(budget.bytes());
  memory->set_resident_bytes(observability::ResidentMemory());
  memory->set_limit_bytes(observability::MemoryLimit());
}

// Says what is known now of how long a version's batches take. UNAVAILABLE with
// reason MODEL_NOT_READY unless it is READY.
absl::Status Describe(const repository::ModelVersion& version,
                      v1::BatchProfile* profile) {
  const absl::StatusOr<std::shared_ptr<repository::LoadedModel>> model =
      version.Loaded();
  if (!model.ok()) return model.status();
  const batching::Executor& executor = *(*model)->executor;
  profile->set_model(version.name());
  profile->set_device(executor.device());
  profile->set_max_batch_size(executor.options().batch.max_batch_size);
  for (const batching::KeyProfile& key : executor.KeyProfiles()) {
    Describe(key, profile->add_size_classes());
  }
  return absl::OkStatus();
}

}  // namespace

AdminService::AdminService(Environment environment)
    : RawService(kName, &environment.metrics, &environment.log),
      env_(std::move(environment)) {
  Add("LoadModel", &AdminService::LoadModel);
  Add("UnloadModel", &AdminService::UnloadModel);
  Add("SetVersionLabel", &AdminService::SetVersionLabel);
  Add("SetCanaryShare", [this](const RawCall& call) {
    absl::Status status = AdministratorOf(&env_.gate, *call.context).status();
    if (status.ok()) {
      status = server::Removed(
          "SetCanaryShare",
          "divide requests between two Deployments by a weighted route");
    }
    return End(call, EndCall(status, call.context));
  });
  Add("GetServerInfo", &AdminService::GetServerInfo);
  Add("GetBatchProfile", &AdminService::GetBatchProfile);
  Add("UpdateRuntimeSettings", &AdminService::UpdateRuntimeSettings);
}

template <typename Request, typename Response>
Reactor* AdminService::AnswerAdmin(
    Method method, const RawCall& call,
    AnsweringTo<Request, Response> answer) const {
  const auto who = AdministratorOf(&env_.gate, *call.context);
  return Answer<Request, Response>(
      method, call,
      [&](RequestRecord* record) {
        record->set_no_model();
        return who.status();
      },
      [&](const Request& asked, Response* response, RequestRecord* record) {
        return answer(*who, asked, response, record);
      });
}

template <typename Request, typename Response>
Reactor* AdminService::ChangeModel(Method method, const RawCall& call,
                                   Changing<Request> start) const {
  return Change<Request, Response>(
      method, call, AdministratorOf(&env_.gate, *call.context), start,
      // The change may end after this service is gone.
      [repository = &env_.repository](const Request& asked, Response* message) {
        const auto target = admin::ParseTarget(asked.name(), "name");
        if (target.ok()) {
          Describe(*repository, target->id, message->mutable_versions());
        }
      });
}

Reactor* AdminService::LoadModel(const RawCall& call) {
  return ChangeModel<v1::LoadModelRequest, v1::LoadModelResponse>(
      Method::kLoadModel, call,
      [this](const std::string& who, const auto& asked, auto done) {
        env_.changes.Load(who, asked.name(), "name",
                          asked.has_batching()
                              ? std::make_optional(asked.batching())
                              : std::nullopt,
                          std::move(done));
      });
}

Reactor* AdminService::UnloadModel(const RawCall& call) {
  return ChangeModel<v1::UnloadModelRequest, v1::UnloadModelResponse>(
      Method::kUnloadModel, call,
      [this](const std::string& who, const auto& asked, auto done) {
        env_.changes.Unload(who, asked.name(), "name", std::move(done));
      });
}

Reactor* AdminService::SetVersionLabel(const RawCall& call) {
  return AnswerAdmin<v1::SetVersionLabelRequest, v1::SetVersionLabelResponse>(
      Method::kSetVersionLabel, call,
      [this](const std::string& who, const auto& asked, auto* answer,
             RequestRecord*) {
        absl::Status status = CheckServing();
        if (!status.ok()) return status;
        status = env_.changes.SetLabel(who, asked.model(), asked.label(),
                                       asked.version());
        if (!status.ok()) return status;
        const auto target = admin::ParseTarget(asked.model(), "model");
        if (target.ok()) {
          Describe(env_.repository, target->id, answer->mutable_versions());
        }
        return status;
      });
}

Reactor* AdminService::GetServerInfo(const RawCall& call) {
  return AnswerAdmin<v1::GetServerInfoRequest, v1::ServerInfo>(
      Method::kGetServerInfo, call,
      [this](const std::string&, const auto&, v1::ServerInfo* info,
             RequestRecord*) {
        info->set_version(env_.build.version);
        info->set_revision(env_.build.revision);
        info->mutable_start_time()->set_seconds(
            absl::ToUnixSeconds(env_.start_time));
        info->set_model_control(env_.model_control);
        Describe(env_.repository, info->mutable_models());
        Describe(env_.memory, info->mutable_memory());
        *info->mutable_settings() = env_.settings.Get();
        return absl::OkStatus();
      });
}

Reactor* AdminService::GetBatchProfile(const RawCall& call) {
  return AnswerAdmin<v1::GetBatchProfileRequest, v1::BatchProfile>(
      Method::kGetBatchProfile, call,
      [this](const std::string&, const auto& asked, auto* profile,
             RequestRecord* record) {
        const auto version = env_.repository.Find(asked.name(), "name");
        if (!version.ok()) return version.status();
        record->set_model((*version)->name(), (*version)->metrics());
        return Describe(**version, profile);
      });
}

Reactor* AdminService::UpdateRuntimeSettings(const RawCall& call) {
  return AnswerAdmin<v1::UpdateRuntimeSettingsRequest, v1::RuntimeSettings>(
      Method::kUpdateRuntimeSettings, call,
      [this](const std::string& who, const auto& asked, auto* settings,
             RequestRecord*) {
        const absl::Status status = env_.settings.Update(asked);
        env_.changes.Log(who, "settings", asked.ShortDebugString(), status);
        *settings = env_.settings.Get();
        return status;
      });
}

}  // namespace sfmamba::rpc
