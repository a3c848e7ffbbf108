#include "server/kserve/kserve_service.h"

#include <memory>
#include <utility>

#include "server/errors/reasons.h"
#include "server/kserve/infer_stream.h"
#include "server/kserve/inference.h"
#include "server/rpc/admin/change_call.h"
#include "server/rpc/call.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/unary_call.h"
#include "server/security/caller.h"

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

// A ModelInfer call.
class InferCall final : public rpc::UnaryCall {
 public:
  InferCall(const prediction::TransportEnvironment& environment,
            const SharedMemory* memory, grpc::CallbackServerContext* context,
            security::Caller caller, grpc::ByteBuffer* request,
            grpc::ByteBuffer* response, rpc::SendWatch* sends)
      : UnaryCall(context, sends),
        sent_(*response),
        inference_(environment, observability::Method::kModelInfer,
                   rpc::InfoOf(*context, std::move(caller)), memory, request,
                   [this](const absl::Status& status,
                          inference::packed::ModelInferResponse* answer) {
                     Answer(status, *answer);
                   }) {}

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving) { inference_.Run(serving); }

  void OnCancel() override { inference_.Cancel(); }

 private:
  void Answer(const absl::Status& status,
              const inference::packed::ModelInferResponse& answer) {
    if (status.ok()) rpc::Serialize(answer, &sent_);
    Send(status);
  }

  grpc::ByteBuffer& sent_;  // The response's bytes.
  Inference inference_;     // Last: it uses everything above.
};

}  // namespace

KserveService::KserveService(prediction::TransportEnvironment environment,
                             Options options)
    : env_(std::move(environment)),
      options_(std::move(options)),
      queries_(env_),
      control_(env_, options_.changes),
      memory_(env_.max_response_bytes),
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

absl::Status KserveService::CheckReader(const Context& context) const {
  return rpc::CheckCaller(env_.gate, context, security::Scope::kRead).status();
}

absl::Status KserveService::CheckServing() const {
  return draining_.load() ? server::Draining("the server") : absl::OkStatus();
}

template <typename Response>
KserveService::Reactor* KserveService::EndRead(Context* context,
                                               const Response& message,
                                               Bytes* response) const {
  const absl::Status status = CheckReader(*context);
  if (!status.ok()) return End(context, rpc::EndCall(status, context));
  return EndProbe(context, message, response);
}

RequestRecord KserveService::Record(Method method, const Bytes& request,
                                    const Context& context) const {
  return RequestRecord(method, request.Length(), context.peer(),
                       rpc::TraceparentOf(context), &env_.metrics, &env_.log);
}

template <typename Request, typename Response>
KserveService::Reactor* KserveService::Answer(Method method, Context* context,
                                              const Bytes* request,
                                              Bytes* response,
                                              Query<Request, Response> query) {
  RequestRecord record = Record(method, *request, *context);
  Request asked;
  Response message;
  const auto caller =
      rpc::CheckCaller(env_.gate, *context, security::Scope::kRead);
  if (caller.ok()) record.set_client(caller->name);
  absl::Status status = caller.ok() ? CheckServing() : caller.status();
  if (status.ok()) status = rpc::Parse(*request, &asked);
  if (status.ok()) status = (queries_.*query)(asked, &message, &record);
  if (status.ok()) rpc::Serialize(message, response);
  return End(context, rpc::EndCall(record.Finish(status), context));
}

KserveService::Reactor* KserveService::Refuse(Method method, Context* context,
                                              const Bytes* request,
                                              const absl::Status& status) {
  RequestRecord record = Record(method, *request, *context);
  record.set_no_model();
  return End(context, rpc::EndCall(record.Finish(status), context));
}

// ---- Probes ----

KserveService::Reactor* KserveService::ServerLive(Context* context,
                                                  const Bytes*,
                                                  Bytes* response) {
  inference::ServerLiveResponse message;
  message.set_live(options_.live());
  return EndProbe(context, message, response);
}

KserveService::Reactor* KserveService::ServerReady(Context* context,
                                                   const Bytes*,
                                                   Bytes* response) {
  inference::ServerReadyResponse message;
  message.set_ready(options_.ready());
  return EndProbe(context, message, response);
}

KserveService::Reactor* KserveService::ModelReady(Context* context,
                                                  const Bytes* request,
                                                  Bytes* response) {
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

KserveService::Reactor* KserveService::ServerMetadata(Context* context,
                                                      const Bytes*,
                                                      Bytes* response) {
  inference::ServerMetadataResponse message;
  DescribeServer(options_.version, options_.system_shared_memory, &message);
  return EndRead(context, message, response);
}

// ---- Inference ----

KserveService::Reactor* KserveService::ModelInfer(Context* context,
                                                  const Bytes* request,
                                                  Bytes* response) {
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
  auto* call = new InferCall(env_, memory(), context, *std::move(caller),
                             const_cast<Bytes*>(request), response, &sends_);
  call->Run(CheckServing());
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
KserveService::ModelStreamInfer(Context* context) {
  auto rights = rpc::CheckStream(env_.gate, *context);
  if (!rights.ok()) {
    RequestRecord record = Record(Method::kModelStreamInfer, Bytes(), *context);
    record.set_no_model();
    return rpc::RefuseStream(
        rpc::EndCall(record.Finish(rights.status()), context));
  }
  return streams_.Start(std::make_shared<InferStream>(
      env_, memory(), context, &sends_, *std::move(rights),
      [this] { return CheckServing(); }));
}

// ---- Models ----

KserveService::Reactor* KserveService::ModelMetadata(Context* context,
                                                     const Bytes* request,
                                                     Bytes* response) {
  return Answer(Method::kModelMetadata, context, request, response,
                &ModelQueries::Metadata);
}

KserveService::Reactor* KserveService::ModelConfig(Context* context,
                                                   const Bytes* request,
                                                   Bytes* response) {
  return Answer(Method::kModelConfig, context, request, response,
                &ModelQueries::Config);
}

KserveService::Reactor* KserveService::ModelStatistics(Context* context,
                                                       const Bytes* request,
                                                       Bytes* response) {
  return Answer(Method::kModelStatistics, context, request, response,
                &ModelQueries::Statistics);
}

KserveService::Reactor* KserveService::RepositoryIndex(Context* context,
                                                       const Bytes* request,
                                                       Bytes* response) {
  return Answer(Method::kRepositoryIndex, context, request, response,
                &ModelQueries::Index);
}

template <typename Response, typename Request>
KserveService::Reactor* KserveService::Change(Method method, Context* context,
                                              const Bytes* request,
                                              Bytes* response,
                                              Start<Request> start) {
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
  (control_.*start)(
      caller, asked, [call, response](const absl::Status& status) {
        call->End(status, [response] { rpc::Serialize(Response(), response); });
      });
  return call.get();
}

KserveService::Reactor* KserveService::RepositoryModelLoad(Context* context,
                                                           const Bytes* request,
                                                           Bytes* response) {
  return Change<inference::RepositoryModelLoadResponse>(
      Method::kRepositoryModelLoad, context, request, response,
      &RepositoryControl::Load);
}

KserveService::Reactor* KserveService::RepositoryModelUnload(
    Context* context, const Bytes* request, Bytes* response) {
  return Change<inference::RepositoryModelUnloadResponse>(
      Method::kRepositoryModelUnload, context, request, response,
      &RepositoryControl::Unload);
}

// ---- Shared memory ----

template <typename Request, typename Response, typename Use>
KserveService::Reactor* KserveService::UseSharedMemory(Context* context,
                                                       const Bytes* request,
                                                       Bytes* response,
                                                       Use use) {
  RequestRecord record = Record(Method::kSharedMemory, *request, *context);
  record.set_no_model();
  Request asked;
  Response message;
  const auto caller =
      rpc::CheckCaller(env_.gate, *context, security::Scope::kInfer);
  if (caller.ok()) record.set_client(caller->name);
  absl::Status status = caller.status();
  if (status.ok()) status = rpc::Parse(*request, &asked);
  if (status.ok()) status = use(asked, &message);
  if (status.ok()) rpc::Serialize(message, response);
  return End(context, rpc::EndCall(record.Finish(status), context));
}

KserveService::Reactor* KserveService::SystemSharedMemoryStatus(
    Context* context, const Bytes* request, Bytes* response) {
  using Response = inference::SystemSharedMemoryStatusResponse;
  if (memory() == nullptr) return EndRead(context, Response(), response);
  using Request = inference::SystemSharedMemoryStatusRequest;
  return UseSharedMemory<Request, Response>(
      context, request, response,
      [this](const Request& asked, Response* message) {
        *message = memory_.Describe(asked.name());
        return absl::OkStatus();
      });
}

KserveService::Reactor* KserveService::SystemSharedMemoryRegister(
    Context* context, const Bytes* request, Bytes* response) {
  using Request = inference::SystemSharedMemoryRegisterRequest;
  using Response = inference::SystemSharedMemoryRegisterResponse;
  return UseSharedMemory<Request, Response>(
      context, request, response, [this](const Request& asked, Response*) {
        return memory() == nullptr ? server::NotSupported("shared memory")
                                   : memory_.Register(asked);
      });
}

KserveService::Reactor* KserveService::SystemSharedMemoryUnregister(
    Context* context, const Bytes* request, Bytes* response) {
  using Response = inference::SystemSharedMemoryUnregisterResponse;
  if (memory() == nullptr) return EndRead(context, Response(), response);
  using Request = inference::SystemSharedMemoryUnregisterRequest;
  return UseSharedMemory<Request, Response>(
      context, request, response, [this](const Request& asked, Response*) {
        memory_.Unregister(asked.name());
        return absl::OkStatus();
      });
}

KserveService::Reactor* KserveService::CudaSharedMemoryStatus(Context* context,
                                                              const Bytes*,
                                                              Bytes* response) {
  return EndRead(context, inference::CudaSharedMemoryStatusResponse(),
                 response);
}

KserveService::Reactor* KserveService::CudaSharedMemoryRegister(
    Context* context, const Bytes* request, Bytes*) {
  const absl::Status allowed = CheckReader(*context);
  return Refuse(
      Method::kSharedMemory, context, request,
      allowed.ok() ? server::NotSupported("shared memory of GPUs") : allowed);
}

KserveService::Reactor* KserveService::CudaSharedMemoryUnregister(
    Context* context, const Bytes*, Bytes* response) {
  return EndRead(context, inference::CudaSharedMemoryUnregisterResponse(),
                 response);
}

}  // namespace sfmamba::kserve
