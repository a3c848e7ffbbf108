#include "server/rpc/admin/admin_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"
#include "server/rpc/admin/change_call.h"
#include "server/rpc/admin/describe_server.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

using observability::Method;
using observability::RequestRecord;

absl::Status AdminService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AdminService::Answer(
    Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
    absl::FunctionRef<absl::Status(const Request&, Response*, RequestRecord*)>
        answer) {
  RequestRecord record(method, request->Length(), context->peer(),
                       TraceparentOf(*context), &env_.metrics, &env_.log);
  record.set_no_model();
  Request asked;
  Response message;
  absl::Status status = env_.changes.Check(CallerOf(*context));
  if (status.ok()) status = Parse(*request, &asked);
  if (status.ok()) status = answer(asked, &message, &record);
  if (status.ok()) Serialize(message, response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(EndCall(record.Finish(status), context));
  return reactor;
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* AdminService::Change(
    Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
    absl::FunctionRef<void(const Request&, const admin::Caller&,
                           admin::ModelChanges::Done)>
        start) {
  const std::shared_ptr<ChangeCall> call =
      ChangeCall::New(method, *request, context, &env_.metrics, &env_.log);
  const admin::Caller caller = CallerOf(*context);
  Request asked;
  absl::Status status = env_.changes.Check(caller);
  if (status.ok()) status = CheckServing();
  if (status.ok()) status = Parse(*request, &asked);
  if (!status.ok()) {
    call->End(status);
    return call.get();
  }
  // The change may end after this service is gone, but not after the call.
  start(asked, caller,
        [call, response, repository = &env_.repository,
         name = asked.name()](const absl::Status& status) {
          call->End(status, [&] {
            Response message;
            const auto target = admin::ParseTarget(name, "name");
            if (target.ok()) {
              ToProto(*repository, target->id, message.mutable_versions());
            }
            Serialize(message, response);
          });
        });
  return call.get();
}

grpc::ServerUnaryReactor* AdminService::LoadModel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Change<v1::LoadModelRequest, v1::LoadModelResponse>(
      Method::kLoadModel, context, request, response,
      [this](const auto& asked, const admin::Caller& caller, auto done) {
        env_.changes.Load(caller, asked.name(), "name",
                          asked.has_batching()
                              ? std::make_optional(asked.batching())
                              : std::nullopt,
                          std::move(done));
      });
}

grpc::ServerUnaryReactor* AdminService::UnloadModel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Change<v1::UnloadModelRequest, v1::UnloadModelResponse>(
      Method::kUnloadModel, context, request, response,
      [this](const auto& asked, const admin::Caller& caller, auto done) {
        env_.changes.Unload(caller, asked.name(), "name", std::move(done));
      });
}

grpc::ServerUnaryReactor* AdminService::SetVersionLabel(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::SetVersionLabelRequest, v1::SetVersionLabelResponse>(
      Method::kSetVersionLabel, context, request, response,
      [this, context](const auto& asked, auto* answer, RequestRecord*) {
        absl::Status status = CheckServing();
        if (!status.ok()) return status;
        if (asked.version() < 0) {
          return server::InvalidField(
              "version",
              absl::StrCat("got ", asked.version(), ", expected 0 or more"));
        }
        status = env_.changes.SetLabel(
            CallerOf(*context), asked.model(), asked.label(),
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

grpc::ServerUnaryReactor* AdminService::SetCanaryShare(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::SetCanaryShareRequest, v1::SetCanaryShareResponse>(
      Method::kSetCanaryShare, context, request, response,
      [this, context](const auto& asked, auto*, RequestRecord*) {
        const absl::Status status = CheckServing();
        if (!status.ok()) return status;
        return env_.changes.SetCanaryShare(CallerOf(*context), asked.model(),
                                           asked.percent());
      });
}

grpc::ServerUnaryReactor* AdminService::GetServerInfo(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::GetServerInfoRequest, v1::ServerInfo>(
      Method::kGetServerInfo, context, request, response,
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

grpc::ServerUnaryReactor* AdminService::GetBatchProfile(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::GetBatchProfileRequest, v1::BatchProfile>(
      Method::kGetBatchProfile, context, request, response,
      [this](const auto& asked, auto* profile, RequestRecord* record) {
        const auto version = env_.repository.Find(asked.name(), "name");
        if (!version.ok()) return version.status();
        record->set_model((*version)->name(), (*version)->metrics());
        return ToProto(**version, profile);
      });
}

grpc::ServerUnaryReactor* AdminService::UpdateRuntimeSettings(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<v1::UpdateRuntimeSettingsRequest, v1::RuntimeSettings>(
      Method::kUpdateRuntimeSettings, context, request, response,
      [this, context](const auto& asked, auto* settings, RequestRecord*) {
        const absl::Status status = env_.settings.Update(asked);
        env_.changes.Log(CallerOf(*context), "settings",
                         asked.ShortDebugString(), status);
        *settings = env_.settings.Get();
        return status;
      });
}

}  // namespace sfmamba::rpc
