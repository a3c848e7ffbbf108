#include "server/api/kserve/kserve_methods.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/struct.pb.h"
#include "inference/grpc_service.pb.h"
#include "server/api/kserve/infer.h"
#include "server/api/kserve/infer_parameters.h"
#include "server/api/kserve/model_queries.h"
#include "server/api/kserve/published_model.h"
#include "server/api/kserve/repository_control.h"
#include "server/call/call.h"
#include "server/errors/reasons.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/security/caller.h"

namespace sfmamba::kserve {
namespace {

using call::About;
using call::AnswerAtOnce;
using call::AnswerUncounted;
using google::protobuf::Struct;
using observability::Method;
using prediction::TransportEnvironment;
using security::Scope;

void RefuseSharedMemory(const TransportEnvironment&, Method,
                        std::unique_ptr<call::Call> call) {
  call->Finish(SharedMemoryRemoved(), nullptr);
}

// Returns empty trace or log settings, because this server does not have these
// settings. Returns an error if the request names an unknown model.
//
// The settings exist only over REST, so no message is defined for the request.
// The request type is ModelReadyRequest, because it has the fields `name` and
// `version`. The server fills these fields from the URL path.
absl::Status GetSettings(const TransportEnvironment& environment,
                         const inference::ModelReadyRequest& request, Struct*) {
  if (request.name().empty()) return absl::OkStatus();
  return FindModel(environment, request.name(), request.version(), "name")
      .status();
}

absl::Status ChangeSettings(const TransportEnvironment& environment,
                            const inference::ModelReadyRequest& request,
                            Struct* settings) {
  const absl::Status found = GetSettings(environment, request, settings);
  return found.ok() ? server::NotSupported("a change of settings over REST")
                    : found;
}

}  // namespace

std::vector<call::Method> KserveMethods(const KserveOptions& options) {
  const auto is_live = [live = options.live](const auto&, const auto&,
                                             auto* response) {
    response->set_live(live());
    return absl::OkStatus();
  };
  const auto is_ready = [ready = options.ready](const auto&, const auto&,
                                                auto* response) {
    response->set_ready(ready());
    return absl::OkStatus();
  };
  const auto is_model_ready = [draining = options.draining](
                                  const TransportEnvironment& environment,
                                  const auto& request, auto* response) {
    const absl::Status status = IsReady(environment, request, response);
    // A draining server reports every model as not ready, so that clients send
    // no new requests.
    if (draining()) response->set_ready(false);
    return status;
  };
  const auto describe = [version = options.version](const auto&, const auto&,
                                                    auto* response) {
    DescribeServer(version, response);
    return absl::OkStatus();
  };
  return {
      {"inference.GRPCInferenceService/ServerLive", "GET /v2/health/live",
       std::nullopt, std::nullopt,
       AnswerUncounted<inference::ServerLiveRequest,
                       inference::ServerLiveResponse>(is_live)},
      {"inference.GRPCInferenceService/ServerReady", "GET /v2/health/ready",
       std::nullopt, std::nullopt,
       AnswerUncounted<inference::ServerReadyRequest,
                       inference::ServerReadyResponse>(is_ready)},
      {"inference.GRPCInferenceService/ServerMetadata", "GET /v2", Scope::kRead,
       std::nullopt,
       AnswerUncounted<inference::ServerMetadataRequest,
                       inference::ServerMetadataResponse>(describe)},
      {"inference.GRPCInferenceService/ModelReady",
       "GET /v2/models/{name}[/versions/{version}]/ready", Scope::kRead,
       std::nullopt,
       AnswerUncounted<inference::ModelReadyRequest,
                       inference::ModelReadyResponse>(is_model_ready)},
      {"inference.GRPCInferenceService/ModelInfer",
       "POST /v2/models/{model_name}[/versions/{model_version}]/infer",
       Scope::kInfer, Method::kModelInfer, Infer},
      {"inference.GRPCInferenceService/ModelStreamInfer", "", Scope::kInfer,
       Method::kModelStreamInfer, nullptr},
      // This row must precede ModelMetadata. Otherwise the path
      // "/v2/models/stats" would select ModelMetadata for a model named
      // "stats".
      {"inference.GRPCInferenceService/ModelStatistics",
       "GET /v2/models[/{name}[/versions/{version}]]/stats", Scope::kRead,
       Method::kModelStatistics,
       AnswerAtOnce<inference::ModelStatisticsRequest,
                    inference::ModelStatisticsResponse>(About::kModel,
                                                        Statistics)},
      {"inference.GRPCInferenceService/ModelMetadata",
       "GET /v2/models/{name}[/versions/{version}]", Scope::kRead,
       Method::kModelMetadata,
       AnswerAtOnce<inference::ModelMetadataRequest,
                    inference::ModelMetadataResponse>(About::kModel, Metadata)},
      {"inference.GRPCInferenceService/ModelConfig",
       "GET /v2/models/{name}[/versions/{version}]/config", Scope::kRead,
       Method::kModelConfig,
       AnswerAtOnce<inference::ModelConfigRequest,
                    inference::ModelConfigResponse>(About::kModel, Config)},
      {"inference.GRPCInferenceService/RepositoryIndex",
       "POST /v2/repository/index", Scope::kRead, Method::kRepositoryIndex,
       AnswerAtOnce<inference::RepositoryIndexRequest,
                    inference::RepositoryIndexResponse>(About::kServer, Index)},
      {"inference.GRPCInferenceService/RepositoryModelLoad",
       "POST /v2/repository/models/{model_name}/load", Scope::kAdmin,
       Method::kRepositoryModelLoad, LoadModel(options.changes)},
      {"inference.GRPCInferenceService/RepositoryModelUnload",
       "POST /v2/repository/models/{model_name}/unload", Scope::kAdmin,
       Method::kRepositoryModelUnload, UnloadModel(options.changes)},
      {"GetTraceSettings",
       "GET /v2[/models/{name}[/versions/{version}]]/trace/setting",
       Scope::kRead, std::nullopt,
       AnswerUncounted<inference::ModelReadyRequest, Struct>(GetSettings)},
      {"ChangeTraceSettings",
       "POST /v2[/models/{name}[/versions/{version}]]/trace/setting",
       Scope::kAdmin, std::nullopt,
       AnswerUncounted<inference::ModelReadyRequest, Struct>(ChangeSettings)},
      {"GetLogSettings", "GET /v2/logging", Scope::kRead, std::nullopt,
       AnswerUncounted<inference::ModelReadyRequest, Struct>(GetSettings)},
      {"ChangeLogSettings", "POST /v2/logging", Scope::kAdmin, std::nullopt,
       AnswerUncounted<inference::ModelReadyRequest, Struct>(ChangeSettings)},
      {"inference.GRPCInferenceService/SystemSharedMemoryStatus",
       "GET /v2/systemsharedmemory[/region/{name}]/status", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
      {"inference.GRPCInferenceService/SystemSharedMemoryRegister",
       "POST /v2/systemsharedmemory/region/{name}/register", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
      {"inference.GRPCInferenceService/SystemSharedMemoryUnregister",
       "POST /v2/systemsharedmemory[/region/{name}]/unregister", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
      {"inference.GRPCInferenceService/CudaSharedMemoryStatus",
       "GET /v2/cudasharedmemory[/region/{name}]/status", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
      {"inference.GRPCInferenceService/CudaSharedMemoryRegister",
       "POST /v2/cudasharedmemory/region/{name}/register", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
      {"inference.GRPCInferenceService/CudaSharedMemoryUnregister",
       "POST /v2/cudasharedmemory[/region/{name}]/unregister", Scope::kInfer,
       std::nullopt, RefuseSharedMemory},
  };
}

}  // namespace sfmamba::kserve
