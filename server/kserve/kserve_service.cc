#include "server/kserve/kserve_service.h"

#include <memory>
#include <utility>

#include "server/errors/reasons.h"
#include "server/kserve/infer_call.h"
#include "server/kserve/infer_stream.h"
#include "server/rpc/admin/change_call.h"
#include "server/rpc/call.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::kserve {
namespace {

using observability::Method;
using observability::RequestRecord;

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

KserveService::KserveService(prediction::TransportEnvironment environment,
                             Options options)
    : env_(std::move(environment)),
      options_(std::move(options)),
      queries_(env_),
      control_(env_, options_.changes),
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

absl::Status KserveService::CheckReader(
    const grpc::CallbackServerContext& context) const {
  return rpc::CheckCaller(env_.gate, context, security::Scope::kRead).status();
}

absl::Status KserveService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

template <typename Response>
grpc::ServerUnaryReactor* KserveService::EndRead(
    grpc::CallbackServerContext* context, const Response& message,
    grpc::ByteBuffer* response) const {
  const absl::Status status = CheckReader(*context);
  if (!status.ok()) return End(context, rpc::EndCall(status, context));
  return EndProbe(context, message, response);
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
  const auto caller =
      rpc::CheckCaller(env_.gate, *context, security::Scope::kRead);
  if (caller.ok()) record.set_client(caller->name);
  absl::Status status = caller.ok() ? CheckServing() : caller.status();
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
  absl::Status status = CheckReader(*context);
  if (status.ok()) status = rpc::Parse(*request, &asked);
  inference::ModelReadyResponse message;
  if (status.ok()) status = queries_.Ready(asked, &message);
  // A stopping server still runs what it has, but must get no more.
  if (draining_.load()) message.set_ready(false);
  if (status.ok()) return EndProbe(context, message, response);
  return End(context, rpc::EndCall(status, context));
}

grpc::ServerUnaryReactor* KserveService::ServerMetadata(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  inference::ServerMetadataResponse message;
  DescribeServer(options_.version, &message);
  return EndRead(context, message, response);
}

// ---- Inference ----

grpc::ServerUnaryReactor* KserveService::ModelInfer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  if (!request->Valid()) {
    // The caller cancelled before its message came: there is no request.
    return End(context, grpc::Status::CANCELLED);
  }
  env_.message_came(context->peer(), request->Length());
  auto caller = rpc::CheckCaller(env_.gate, *context, security::Scope::kInfer);
  if (!caller.ok()) {
    return Refuse(Method::kModelInfer, context, request, caller.status());
  }
  // gRPC made the request for this call and does not read it again; nothing
  // else would free it before the call ends.
  auto* call =
      new InferCall(env_, context, *std::move(caller),
                    const_cast<grpc::ByteBuffer*>(request), response, &sends_);
  call->Run(CheckServing());
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
KserveService::ModelStreamInfer(grpc::CallbackServerContext* context) {
  auto rights = rpc::CheckStream(env_.gate, *context);
  if (!rights.ok()) {
    RequestRecord record =
        Record(Method::kModelStreamInfer, grpc::ByteBuffer(), *context);
    record.set_no_model();
    return rpc::RefuseStream(
        rpc::EndCall(record.Finish(rights.status()), context));
  }
  return streams_.Start(
      std::make_shared<InferStream>(env_, context, &sends_, *std::move(rights),
                                    [this] { return CheckServing(); }));
}

// ---- Models ----

grpc::ServerUnaryReactor* KserveService::ModelMetadata(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelMetadataRequest,
                inference::ModelMetadataResponse>(
      Method::kModelMetadata, context, request, response,
      [this](const auto& asked, auto* metadata, RequestRecord* record) {
        return queries_.Metadata(asked, metadata, record);
      });
}

grpc::ServerUnaryReactor* KserveService::ModelConfig(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      Method::kModelConfig, context, request, response,
      [this](const auto& asked, auto* config, RequestRecord* record) {
        return queries_.Config(asked, config, record);
      });
}

grpc::ServerUnaryReactor* KserveService::ModelStatistics(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::ModelStatisticsRequest,
                inference::ModelStatisticsResponse>(
      Method::kModelStatistics, context, request, response,
      [this](const auto& asked, auto* statistics, RequestRecord* record) {
        return queries_.Statistics(asked, statistics, record);
      });
}

grpc::ServerUnaryReactor* KserveService::RepositoryIndex(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer<inference::RepositoryIndexRequest,
                inference::RepositoryIndexResponse>(
      Method::kRepositoryIndex, context, request, response,
      [this](const auto& asked, auto* index, RequestRecord* record) {
        return queries_.Index(asked, index, record);
      });
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* KserveService::Change(
    Method method, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
    absl::FunctionRef<void(const admin::Caller&, const Request&,
                           RepositoryControl::Done)>
        start) {
  const std::shared_ptr<rpc::ChangeCall> call =
      rpc::ChangeCall::New(method, *request, context, &env_.metrics, &env_.log);
  const admin::Caller caller = rpc::CallerOf(*context);
  Request asked;
  absl::Status status = control_.Check(caller);
  if (status.ok()) status = CheckServing();
  if (status.ok()) status = rpc::Parse(*request, &asked);
  if (!status.ok()) {
    call->End(status);
    return call.get();
  }
  start(caller, asked, [call, response](const absl::Status& status) {
    call->End(status, [response] { rpc::Serialize(Response(), response); });
  });
  return call.get();
}

grpc::ServerUnaryReactor* KserveService::RepositoryModelLoad(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Change<inference::RepositoryModelLoadRequest,
                inference::RepositoryModelLoadResponse>(
      Method::kRepositoryModelLoad, context, request, response,
      [this](const admin::Caller& caller, const auto& asked,
             RepositoryControl::Done done) {
        control_.Load(caller, asked, std::move(done));
      });
}

grpc::ServerUnaryReactor* KserveService::RepositoryModelUnload(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Change<inference::RepositoryModelUnloadRequest,
                inference::RepositoryModelUnloadResponse>(
      Method::kRepositoryModelUnload, context, request, response,
      [this](const admin::Caller& caller, const auto& asked,
             RepositoryControl::Done done) {
        control_.Unload(caller, asked, std::move(done));
      });
}

// ---- Shared memory: there is none. ----

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryStatus(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndRead(context, inference::SystemSharedMemoryStatusResponse(),
                 response);
}

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryRegister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  const absl::Status allowed = CheckReader(*context);
  return Refuse(Method::kSharedMemory, context, request,
                allowed.ok() ? server::NotSupported("shared memory") : allowed);
}

grpc::ServerUnaryReactor* KserveService::SystemSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndRead(context, inference::SystemSharedMemoryUnregisterResponse(),
                 response);
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryStatus(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndRead(context, inference::CudaSharedMemoryStatusResponse(),
                 response);
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryRegister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer*) {
  const absl::Status allowed = CheckReader(*context);
  return Refuse(Method::kSharedMemory, context, request,
                allowed.ok() ? server::NotSupported("shared memory") : allowed);
}

grpc::ServerUnaryReactor* KserveService::CudaSharedMemoryUnregister(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer*,
    grpc::ByteBuffer* response) {
  return EndRead(context, inference::CudaSharedMemoryUnregisterResponse(),
                 response);
}

}  // namespace sfmamba::kserve
