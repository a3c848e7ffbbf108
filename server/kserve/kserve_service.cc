#include "server/kserve/kserve_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"
#include "server/kserve/describe_model.h"
#include "server/kserve/infer_call.h"
#include "server/kserve/infer_stream.h"
#include "server/kserve/inference.h"
#include "server/repository/model_repository.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::kserve {
namespace {

using observability::Method;
using observability::RequestRecord;
using repository::ModelVersion;

constexpr char kServerName[] = "sfmamba";
constexpr const char* kExtensions[] = {
    "classification",      "model_repository",   "schedule_policy",
    "model_configuration", "binary_tensor_data", "parameters",
    "statistics",
};

// Ends a call at once.
grpc::ServerUnaryReactor* End(grpc::CallbackServerContext* context,
                              const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

// Ends a call that probes make, which is not counted.
template <typename Response>
grpc::ServerUnaryReactor* EndProbe(grpc::CallbackServerContext* context,
                                   const Response& message,
                                   grpc::ByteBuffer* response) {
  rpc::Serialize(message, response);
  return End(context, grpc::Status::OK);
}

}  // namespace

KserveService::KserveService(prediction::PredictionEnvironment environment,
                             Options options)
    : env_(std::move(environment)),
      options_(std::move(options)),
      sends_(options_.send_timeout, env_.clock) {}

void KserveService::StartDraining() {
  draining_.store(true);
  streams_.Tick(true);
}

void KserveService::EndUnreadCalls() {
  streams_.Tick(draining_.load());
  const int calls = sends_.CancelLate();
  if (calls == 0) return;
  env_.log.Warning(observability::LogModule::kRequests,
                   "answers were not read: their calls are ended",
                   {{"calls", calls}});
}

absl::Status KserveService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

RequestRecord KserveService::Record(
    Method method, const grpc::ByteBuffer& request,
    const grpc::CallbackServerContext& context) const {
  return RequestRecord(method, request.Length(), context.peer(),
                       rpc::TraceparentOf(context), &env_.metrics, &env_.log);
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* KserveService::Answer(
    Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
    absl::FunctionRef<absl::Status(const Request&, Response*, RequestRecord*)>
        answer) {
  RequestRecord record = Record(method, *request, *context);
  Request asked;
  Response message;
  absl::Status status = CheckServing();
  if (status.ok()) status = rpc::Parse(*request, &asked);
  if (status.ok()) status = answer(asked, &message, &record);
  if (status.ok()) rpc::Serialize(message, response);
  return End(context, rpc::EndCall(record.Finish(status), context));
}

grpc::ServerUnaryReactor* KserveService::Refuse(
    Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, const absl::Status& status) {
  RequestRecord record = Record(method, *request, *context);
  record.set_no_model();
  return End(context, rpc::EndCall(record.Finish(status), context));
}

// ---- Probes ----

grpc::ServerUnaryReactor* KserveService::ServerLive(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  inference::ServerLiveResponse message;
  message.set_live(options_.live());
  return EndProbe(context, message, response);
}

grpc::ServerUnaryReactor* KserveService::ServerReady(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  inference::ServerReadyResponse message;
  message.set_ready(options_.ready());
  return EndProbe(context, message, response);
}

grpc::ServerUnaryReactor* KserveService::ModelReady(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  inference::ModelReadyRequest asked;
  absl::Status status = rpc::Parse(*request, &asked);
  inference::ModelReadyResponse message;
  if (status.ok()) {
    const auto model =
        FindModel(env_.repository, asked.name(), asked.version(), "name");
    // A model that is not there is not ready.
    if (!absl::IsNotFound(model.status())) status = model.status();
    message.set_ready(model.ok() && !draining_.load() &&
                      (*model)->Loaded().ok());
  }
  if (status.ok()) return EndProbe(context, message, response);
  return End(context, rpc::EndCall(status, context));
}

grpc::ServerUnaryReactor* KserveService::ServerMetadata(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  inference::ServerMetadataResponse message;
  message.set_name(kServerName);
  message.set_version(options_.version);
  for (const char* extension : kExtensions) message.add_extensions(extension);
  return EndProbe(context, message, response);
}

// ---- Inference ----

grpc::ServerUnaryReactor* KserveService::ModelInfer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  if (!request->Valid()) {
    // The caller has cancelled before its message came: there is no request.
    return End(context, grpc::Status::CANCELLED);
  }
  // gRPC made the request for this call and does not read it again; nothing
  // else would free it before the call ends.
  auto* call = new InferCall(
      env_, context, const_cast<grpc::ByteBuffer*>(request), response, &sends_);
  call->Run(CheckServing());
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
KserveService::ModelStreamInfer(grpc::CallbackServerContext* context) {
  return streams_.Start(std::make_shared<InferStream>(
      env_, context, &sends_, [this] { return CheckServing(); }));
}

// ---- Models ----

grpc::ServerUnaryReactor* KserveService::ModelMetadata(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelMetadataRequest,
                inference::ModelMetadataResponse>(
      Method::kModelMetadata, context, request, response,
      [this](const auto& asked, auto* metadata, RequestRecord* record) {
        const auto model =
            FindModel(env_.repository, asked.name(), asked.version(), "name");
        if (!model.ok()) return model.status();
        record->set_model((*model)->name(), (*model)->metrics());
        return DescribeMetadata(**model, metadata);
      });
}

grpc::ServerUnaryReactor* KserveService::ModelConfig(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      Method::kModelConfig, context, request, response,
      [this](const auto& asked, auto* message, RequestRecord* record) {
        const auto model =
            FindModel(env_.repository, asked.name(), asked.version(), "name");
        if (!model.ok()) return model.status();
        record->set_model((*model)->name(), (*model)->metrics());
        return DescribeConfig(**model, env_.limits.max_images,
                              env_.default_deadline, message->mutable_config());
      });
}

grpc::ServerUnaryReactor* KserveService::ModelStatistics(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelStatisticsRequest,
                inference::ModelStatisticsResponse>(
      Method::kModelStatistics, context, request, response,
      [this](const auto& asked, auto* message, RequestRecord* record) {
        if (asked.name().empty()) {
          record->set_no_model();
          for (const auto& model : env_.repository.List()) {
            if (!model->Loaded().ok()) continue;
            DescribeStatistics(*model, message->add_model_stats());
          }
          return absl::OkStatus();
        }
        const auto model =
            FindModel(env_.repository, asked.name(), asked.version(), "name");
        if (!model.ok()) return model.status();
        record->set_model((*model)->name(), (*model)->metrics());
        const auto loaded = (*model)->Loaded();
        if (!loaded.ok()) return loaded.status();
        DescribeStatistics(**model, message->add_model_stats());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::RepositoryIndex(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::RepositoryIndexRequest,
                inference::RepositoryIndexResponse>(
      Method::kRepositoryIndex, context, request, response,
      [this](const auto& asked, auto* index, RequestRecord* record) {
        record->set_no_model();
        if (!asked.repository_name().empty()) {
          return server::InvalidField("repository_name",
                                      "expected none: there is one repository");
        }
        for (const auto& model : env_.repository.List()) {
          if (asked.ready() && !model->Loaded().ok()) continue;
          auto* entry = index->add_models();
          entry->set_name(model->id());
          entry->set_version(absl::StrCat(model->number()));
          entry->set_state(
              std::string(observability::ModelStateName(model->state())));
          entry->set_reason(model->state_reason());
        }
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* KserveService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  return Refuse(Method::kRepositoryModelLoad, context, request,
                server::ModelControlOff());
}

grpc::ServerUnaryReactor* KserveService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  return Refuse(Method::kRepositoryModelUnload, context, request,
                server::ModelControlOff());
}

// ---- Shared memory: there is none. ----

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryStatus(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndProbe(context, inference::SystemSharedMemoryStatusResponse(),
                  response);
}

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryRegister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  return Refuse(Method::kSharedMemory, context, request,
                server::NotSupported("shared memory"));
}

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndProbe(context, inference::SystemSharedMemoryUnregisterResponse(),
                  response);
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryStatus(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndProbe(context, inference::CudaSharedMemoryStatusResponse(),
                  response);
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryRegister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  return Refuse(Method::kSharedMemory, context, request,
                server::NotSupported("shared memory"));
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndProbe(context, inference::CudaSharedMemoryUnregisterResponse(),
                  response);
}

}  // namespace sfmamba::kserve
