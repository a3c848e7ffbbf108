#include "server/rpc/admin/admin_service.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"
#include "server/observability/request_record.h"
#include "server/rpc/admin/describe_server.h"

namespace sfmamba::rpc {

using observability::Method;
using observability::RequestRecord;

AdminService::AdminService(Environment environment)
    : RawService(kName, &environment.metrics, &environment.log),
      env_(std::move(environment)) {
  Add("LoadModel", &AdminService::LoadModel);
  Add("UnloadModel", &AdminService::UnloadModel);
  Add("SetVersionLabel", &AdminService::SetVersionLabel);
  Add("SetCanaryShare", &AdminService::SetCanaryShare);
  Add("GetServerInfo", &AdminService::GetServerInfo);
  Add("GetBatchProfile", &AdminService::GetBatchProfile);
  Add("UpdateRuntimeSettings", &AdminService::UpdateRuntimeSettings);
}

template <typename Request, typename Response>
Reactor* AdminService::AnswerAdmin(Method method, const RawCall& call,
                                   Answering<Request, Response> answer) const {
  return Answer<Request, Response>(
      method, call,
      [&](RequestRecord* record) {
        record->set_no_model();
        return env_.changes.Check(CallerOf(*call.context));
      },
      answer);
}

template <typename Request, typename Response>
Reactor* AdminService::ChangeModel(Method method, const RawCall& call,
                                   Changing<Request> start) const {
  return Change<Request, Response>(
      method, call,
      [this](const admin::Caller& caller) {
        return env_.changes.Check(caller);
      },
      start,
      // The change may end after this service is gone.
      [repository = &env_.repository](const Request& asked, Response* message) {
        const auto target = admin::ParseTarget(asked.name(), "name");
        if (target.ok()) {
          ToProto(*repository, target->id, message->mutable_versions());
        }
      });
}

Reactor* AdminService::LoadModel(const RawCall& call) {
  return ChangeModel<v1::LoadModelRequest, v1::LoadModelResponse>(
      Method::kLoadModel, call,
      [this](const admin::Caller& caller, const auto& asked, auto done) {
        env_.changes.Load(caller, asked.name(), "name",
                          asked.has_batching()
                              ? std::make_optional(asked.batching())
                              : std::nullopt,
                          std::move(done));
      });
}

Reactor* AdminService::UnloadModel(const RawCall& call) {
  return ChangeModel<v1::UnloadModelRequest, v1::UnloadModelResponse>(
      Method::kUnloadModel, call,
      [this](const admin::Caller& caller, const auto& asked, auto done) {
        env_.changes.Unload(caller, asked.name(), "name", std::move(done));
      });
}

Reactor* AdminService::SetVersionLabel(const RawCall& call) {
  return AnswerAdmin<v1::SetVersionLabelRequest, v1::SetVersionLabelResponse>(
      Method::kSetVersionLabel, call,
      [this, &call](const auto& asked, auto* answer, RequestRecord*) {
        absl::Status status = CheckServing();
        if (!status.ok()) return status;
        if (asked.version() < 0) {
          return server::InvalidField(
              "version",
              absl::StrCat("got ", asked.version(), ", expected 0 or more"));
        }
        status = env_.changes.SetLabel(
            CallerOf(*call.context), asked.model(), asked.label(),
            asked.version() == 0 ? std::nullopt
                                 : std::make_optional(asked.version()));
        if (!status.ok()) return status;
        const auto target = admin::ParseTarget(asked.model(), "model");
        if (target.ok()) {
          ToProto(env_.repository, target->id, answer->mutable_versions());
        }
        return status;
      });
}

Reactor* AdminService::SetCanaryShare(const RawCall& call) {
  return AnswerAdmin<v1::SetCanaryShareRequest, v1::SetCanaryShareResponse>(
      Method::kSetCanaryShare, call,
      [this, &call](const auto& asked, auto*, RequestRecord*) {
        const absl::Status status = CheckServing();
        if (!status.ok()) return status;
        return env_.changes.SetCanaryShare(CallerOf(*call.context),
                                           asked.model(), asked.percent());
      });
}

Reactor* AdminService::GetServerInfo(const RawCall& call) {
  return AnswerAdmin<v1::GetServerInfoRequest, v1::ServerInfo>(
      Method::kGetServerInfo, call,
      [this](const auto&, v1::ServerInfo* info, RequestRecord*) {
        info->set_version(env_.build.version);
        info->set_revision(env_.build.revision);
        info->mutable_start_time()->set_seconds(
            absl::ToUnixSeconds(env_.start_time));
        info->set_model_control(env_.model_control);
        ToProto(env_.repository, info->mutable_models());
        ToProto(env_.memory, info->mutable_memory());
        *info->mutable_settings() = env_.settings.Get();
        return absl::OkStatus();
      });
}

Reactor* AdminService::GetBatchProfile(const RawCall& call) {
  return AnswerAdmin<v1::GetBatchProfileRequest, v1::BatchProfile>(
      Method::kGetBatchProfile, call,
      [this](const auto& asked, auto* profile, RequestRecord* record) {
        const auto version = env_.repository.Find(asked.name(), "name");
        if (!version.ok()) return version.status();
        record->set_model((*version)->name(), (*version)->metrics());
        return ToProto(**version, profile);
      });
}

Reactor* AdminService::UpdateRuntimeSettings(const RawCall& call) {
  return AnswerAdmin<v1::UpdateRuntimeSettingsRequest, v1::RuntimeSettings>(
      Method::kUpdateRuntimeSettings, call,
      [this, &call](const auto& asked, auto* settings, RequestRecord*) {
        const absl::Status status = env_.settings.Update(asked);
        env_.changes.Log(CallerOf(*call.context), "settings",
                         asked.ShortDebugString(), status);
        *settings = env_.settings.Get();
        return status;
      });
}

}  // namespace sfmamba::rpc
