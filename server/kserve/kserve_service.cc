#include "server/kserve/kserve_service.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "server/kserve/infer_parameters.h"
#include "server/kserve/inference.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"
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

constexpr size_t kMaxIdShown = 128;  // Bytes.
constexpr char kFinalResponse[] = "triton_final_response";

// Whether the client wants an error to end the stream with its status.
bool WantsStatus(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("triton_grpc_error");
  return found != metadata.end() &&
         (found->second == "true" || found->second == "1");
}

// Returns an error as text, with the request's id: the message is all that
// clients see of an error.
std::string Describe(const absl::Status& status, absl::string_view id) {
  const std::string request =
      id.empty()
          ? ""
          : absl::StrCat("[request id: ", base::Utf8Prefix(id, kMaxIdShown),
                         "] ");
  return absl::StrCat(request, absl::StatusCodeToString(status.code()), ": ",
                      status.message());
}

// A request of a ModelStreamInfer call.
class InferItem final : public rpc::StreamItem {
 public:
  InferItem(const prediction::TransportEnvironment& environment,
            const grpc::CallbackServerContext& context,
            const security::Caller& caller, grpc::ByteBuffer* message,
            bool errors_end_stream)
      : errors_end_stream_(errors_end_stream),
        inference_(environment, Method::kModelStreamInfer,
                   rpc::InfoOf(context, caller), message,
                   [this](const absl::Status& status,
                          inference::packed::ModelInferResponse* response) {
                     Done(status, response);
                   }) {}

  void Cancel() override { inference_.Cancel(); }

  const std::string& id() const override { return inference_.id(); }
  bool in_order() const override { return id().empty(); }

 private:
  void Begin(const absl::Status& serving) override { inference_.Run(serving); }

  void Done(const absl::Status& status,
            inference::packed::ModelInferResponse* response) {
    if (!status.ok() && errors_end_stream_) {
      stream_error_ = status;
    } else {
      Answer(status, response);
    }
    End();
  }

  void Answer(const absl::Status& status,
              inference::packed::ModelInferResponse* response) {
    inference::packed::ModelStreamInferResponse message;
    if (!status.ok()) {
      message.set_error_message(Describe(status, id()));
      response->set_id(id());
    }
    if (inference_.wants_final_mark()) {
      (*response->mutable_parameters())[kFinalResponse].set_bool_param(true);
    }
    message.mutable_infer_response()->Swap(response);
    rpc::Serialize(message, &answer_);
  }

  const bool errors_end_stream_;
  Inference inference_;  // Last: it uses everything above.
};

}  // namespace

KserveService::KserveService(prediction::TransportEnvironment environment,
                             Options options)
    : PredictionService(kName, std::move(environment), options.send_timeout),
      options_(std::move(options)),
      queries_(env_),
      control_(env_, options_.changes) {
  using Service = KserveService;
  Add("ServerLive", &Service::ServerLive);
  Add("ServerReady", &Service::ServerReady);
  Add("ServerMetadata", &Service::ServerMetadata);
  Add("ModelReady", &Service::ModelReady);
  Add("ModelInfer", &Service::ModelInfer);
  AddQuery("ModelMetadata", Method::kModelMetadata, &ModelQueries::Metadata);
  AddQuery("ModelConfig", Method::kModelConfig, &ModelQueries::Config);
  AddQuery("ModelStatistics", Method::kModelStatistics,
           &ModelQueries::Statistics);
  AddQuery("RepositoryIndex", Method::kRepositoryIndex, &ModelQueries::Index);
  AddChange<inference::RepositoryModelLoadResponse>(
      "RepositoryModelLoad", Method::kRepositoryModelLoad,
      &RepositoryControl::Load);
  AddChange<inference::RepositoryModelUnloadResponse>(
      "RepositoryModelUnload", Method::kRepositoryModelUnload,
      &RepositoryControl::Unload);
  for (const char* removed :
       {"SystemSharedMemoryStatus", "SystemSharedMemoryRegister",
        "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus",
        "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister"}) {
    Add(removed, [this](const RawCall& call) {
      absl::Status status =
          rpc::CheckCaller(env_.gate, *call.context, security::Scope::kInfer)
              .status();
      if (status.ok()) status = SharedMemoryRemoved();
      return rpc::End(call, rpc::EndCall(status, call.context));
    });
  }
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
  DescribeServer(options_.version, &message);
  return EndRead(call, message);
}

// ---- Inference ----

rpc::Reactor* KserveService::ModelInfer(const RawCall& call) {
  return Predict<Inference>(Method::kModelInfer, call);
}

// Answers go as they are ready, each with its request's id, but those to
// requests without an id go in the order of their requests. An error is the
// answer to one request, a malformed one too; with the metadata
// `triton_grpc_error: true` the first error ends the stream instead, and what
// is in flight then is cancelled.
rpc::StreamReactor* KserveService::ModelStreamInfer(
    grpc::CallbackServerContext* context) {
  rpc::StreamCall::Options options;
  options.method = Method::kModelStreamInfer;
  options.max_in_flight = kMaxInFlight;
  return Open(context, std::move(options),
              [this, context, errors_end_it = WantsStatus(*context)](
                  rpc::StreamCall& stream, grpc::ByteBuffer* received) {
                return std::make_unique<InferItem>(
                    env_, *context, stream.caller(), received, errors_end_it);
              });
}

// ---- Models ----

template <typename Request, typename Response>
void KserveService::AddQuery(const char* name, Method method,
                             Query<Request, Response> query) {
  Add(name, [this, method, query](const RawCall& call) {
    return Answer<Request, Response>(
        method, call,
        [&](RequestRecord* record) { return CheckReader(call, record); },
        [&](const Request& asked, Response* message, RequestRecord* record) {
          return (queries_.*query)(asked, message, record);
        });
  });
}

template <typename Response, typename Request>
void KserveService::AddChange(const char* name, Method method,
                              Start<Request> start) {
  Add(name, [this, method, start](const RawCall& call) {
    auto who = rpc::AdministratorOf(env_.gate, *call.context);
    // Only a caller that may administer learns that changes are switched off.
    const absl::Status changes = control_.Check();
    if (who.ok() && !changes.ok()) who = changes;
    return Change<Request, Response>(
        method, call, who,
        [&](const std::string& who, const Request& asked,
            RepositoryControl::Done done) {
          (control_.*start)(who, asked, std::move(done));
        },
        [](const Request&, Response*) {});
  });
}

}  // namespace sfmamba::kserve
