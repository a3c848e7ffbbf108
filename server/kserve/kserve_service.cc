#include "server/kserve/kserve_service.h"

#include <memory>
#include <utility>

#include "server/errors/reasons.h"
#include "server/kserve/infer_stream.h"
#include "server/kserve/inference.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/send_watch.h"
#include "server/security/caller.h"

namespace sfmamba::kserve {
namespace {

using observability::Method;
using observability::RequestRecord;

// Ends a call that probes make, which is not counted.
template <typename Response>
rpc::Reactor* EndProbe(const rpc::RawCall& call, const Response& message) {
  rpc::Serialize(message, call.response);
  return rpc::End(call, grpc::Status::OK);
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
    : PredictionService(kName, std::move(environment), options.send_timeout),
      options_(std::move(options)),
      queries_(env_),
      control_(env_, options_.changes),
      memory_(env_.max_response_bytes) {
  using Service = KserveService;
  Add("ServerLive", &Service::ServerLive);
  Add("ServerReady", &Service::ServerReady);
  Add("ServerMetadata", &Service::ServerMetadata);
  Add("ModelReady", &Service::ModelReady);
  Add("ModelInfer", &Service::ModelInfer);
  Add("ModelMetadata", &Service::ModelMetadata);
  Add("ModelConfig", &Service::ModelConfig);
  Add("ModelStatistics", &Service::ModelStatistics);
  Add("RepositoryIndex", &Service::RepositoryIndex);
  Add("RepositoryModelLoad", &Service::RepositoryModelLoad);
  Add("RepositoryModelUnload", &Service::RepositoryModelUnload);
  Add("SystemSharedMemoryStatus", &Service::SystemSharedMemoryStatus);
  Add("SystemSharedMemoryRegister", &Service::SystemSharedMemoryRegister);
  Add("SystemSharedMemoryUnregister", &Service::SystemSharedMemoryUnregister);
  Add("CudaSharedMemoryStatus", &Service::CudaSharedMemoryStatus);
  Add("CudaSharedMemoryRegister", &Service::CudaSharedMemoryRegister);
  Add("CudaSharedMemoryUnregister", &Service::CudaSharedMemoryUnregister);
  AddStream("ModelStreamInfer", [this](grpc::CallbackServerContext* context) {
    return ModelStreamInfer(context);
  });
}

template <typename Response>
rpc::Reactor* KserveService::EndRead(const RawCall& call,
                                     const Response& message) const {
  const absl::Status status =
      rpc::CheckCaller(env_.gate, *call.context, security::Scope::kRead)
          .status();
  if (status.ok()) return EndProbe(call, message);
  return rpc::End(call, rpc::EndCall(status, call.context));
}

// ---- Probes ----

rpc::Reactor* KserveService::ServerLive(const RawCall& call) {
  inference::ServerLiveResponse message;
  message.set_live(options_.live());
  return EndProbe(call, message);
}

rpc::Reactor* KserveService::ServerReady(const RawCall& call) {
  inference::ServerReadyResponse message;
  message.set_ready(options_.ready());
  return EndProbe(call, message);
}

rpc::Reactor* KserveService::ModelReady(const RawCall& call) {
  inference::ModelReadyRequest asked;
  absl::Status status =
      rpc::CheckCaller(env_.gate, *call.context, security::Scope::kRead)
          .status();
  if (status.ok()) status = rpc::Parse(*call.request, &asked);
  inference::ModelReadyResponse message;
  if (status.ok()) status = queries_.Ready(asked, &message);
  // A stopping server still runs what it has, but must get no more.
  if (!CheckServing().ok()) message.set_ready(false);
  if (status.ok()) return EndProbe(call, message);
  return rpc::End(call, rpc::EndCall(status, call.context));
}

rpc::Reactor* KserveService::ServerMetadata(const RawCall& call) {
  inference::ServerMetadataResponse message;
  DescribeServer(options_.version, options_.system_shared_memory, &message);
  return EndRead(call, message);
}

// ---- Inference ----

rpc::Reactor* KserveService::ModelInfer(const RawCall& call) {
  return Predict(Method::kModelInfer, call,
                 [&](security::Caller caller, grpc::ByteBuffer* request) {
                   auto* made = new InferCall(env_, memory(), call.context,
                                              std::move(caller), request,
                                              call.response, &sends_);
                   made->Run(CheckServing());
                   return made;
                 });
}

rpc::StreamReactor* KserveService::ModelStreamInfer(
    grpc::CallbackServerContext* context) {
  return Open(
      Method::kModelStreamInfer, context, [&](rpc::StreamRights rights) {
        return std::make_shared<InferStream>(env_, memory(), context, &sends_,
                                             std::move(rights),
                                             [this] { return CheckServing(); });
      });
}

// ---- Models ----

template <typename Request, typename Response>
rpc::Reactor* KserveService::Ask(Method method, const RawCall& call,
                                 Query<Request, Response> query) const {
  return Answer<Request, Response>(
      method, call,
      [&](RequestRecord* record) { return CheckReader(call, record); },
      [&](const Request& asked, Response* message, RequestRecord* record) {
        return (queries_.*query)(asked, message, record);
      });
}

rpc::Reactor* KserveService::ModelMetadata(const RawCall& call) {
  return Ask(Method::kModelMetadata, call, &ModelQueries::Metadata);
}

rpc::Reactor* KserveService::ModelConfig(const RawCall& call) {
  return Ask(Method::kModelConfig, call, &ModelQueries::Config);
}

rpc::Reactor* KserveService::ModelStatistics(const RawCall& call) {
  return Ask(Method::kModelStatistics, call, &ModelQueries::Statistics);
}

rpc::Reactor* KserveService::RepositoryIndex(const RawCall& call) {
  return Ask(Method::kRepositoryIndex, call, &ModelQueries::Index);
}

template <typename Response, typename Request>
rpc::Reactor* KserveService::Control(Method method, const RawCall& call,
                                     Start<Request> start) {
  return Change<Request, Response>(
      method, call,
      [this](const admin::Caller& caller) { return control_.Check(caller); },
      [&](const admin::Caller& caller, const Request& asked,
          RepositoryControl::Done done) {
        (control_.*start)(caller, asked, std::move(done));
      },
      [](const Request&, Response*) {});
}

rpc::Reactor* KserveService::RepositoryModelLoad(const RawCall& call) {
  return Control<inference::RepositoryModelLoadResponse>(
      Method::kRepositoryModelLoad, call, &RepositoryControl::Load);
}

rpc::Reactor* KserveService::RepositoryModelUnload(const RawCall& call) {
  return Control<inference::RepositoryModelUnloadResponse>(
      Method::kRepositoryModelUnload, call, &RepositoryControl::Unload);
}

// ---- Shared memory ----

template <typename Request, typename Response, typename Use>
rpc::Reactor* KserveService::UseSharedMemory(const RawCall& call, Use use) {
  return Answer<Request, Response>(
      Method::kSharedMemory, call,
      [&](RequestRecord* record) {
        record->set_no_model();
        return CheckScope(call, security::Scope::kInfer, record);
      },
      [&use](const Request& asked, Response* message, RequestRecord*) {
        return use(asked, message);
      });
}

rpc::Reactor* KserveService::SystemSharedMemoryStatus(const RawCall& call) {
  using Response = inference::SystemSharedMemoryStatusResponse;
  if (memory() == nullptr) return EndRead(call, Response());
  using Request = inference::SystemSharedMemoryStatusRequest;
  return UseSharedMemory<Request, Response>(
      call, [this](const Request& asked, Response* message) {
        *message = memory_.Describe(asked.name());
        return absl::OkStatus();
      });
}

rpc::Reactor* KserveService::SystemSharedMemoryRegister(const RawCall& call) {
  using Request = inference::SystemSharedMemoryRegisterRequest;
  using Response = inference::SystemSharedMemoryRegisterResponse;
  return UseSharedMemory<Request, Response>(
      call, [this](const Request& asked, Response*) {
        return memory() == nullptr ? server::NotSupported("shared memory")
                                   : memory_.Register(asked);
      });
}

rpc::Reactor* KserveService::SystemSharedMemoryUnregister(const RawCall& call) {
  using Response = inference::SystemSharedMemoryUnregisterResponse;
  if (memory() == nullptr) return EndRead(call, Response());
  using Request = inference::SystemSharedMemoryUnregisterRequest;
  return UseSharedMemory<Request, Response>(
      call, [this](const Request& asked, Response*) {
        memory_.Unregister(asked.name());
        return absl::OkStatus();
      });
}

rpc::Reactor* KserveService::CudaSharedMemoryStatus(const RawCall& call) {
  return EndRead(call, inference::CudaSharedMemoryStatusResponse());
}

rpc::Reactor* KserveService::CudaSharedMemoryRegister(const RawCall& call) {
  const absl::Status allowed =
      rpc::CheckCaller(env_.gate, *call.context, security::Scope::kRead)
          .status();
  return rpc::End(
      call, Refuse(Method::kSharedMemory, call.request->Length(),
                   allowed.ok() ? server::NotSupported("shared memory of GPUs")
                                : allowed,
                   call.context));
}

rpc::Reactor* KserveService::CudaSharedMemoryUnregister(const RawCall& call) {
  return EndRead(call, inference::CudaSharedMemoryUnregisterResponse());
}

}  // namespace sfmamba::kserve
