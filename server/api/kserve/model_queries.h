#ifndef SFMAMBA_SERVER_API_KSERVE_MODEL_QUERIES_H_
#define SFMAMBA_SERVER_API_KSERVE_MODEL_QUERIES_H_

#include <string>

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {

// The functions below describe the server and its models. Each function fills
// the response. If the request names a model, a function with the parameter
// `record` stores the model in `record`. The functions return these errors:
// - NOT_FOUND: the model does not exist.
// - UNAVAILABLE: the model is not READY.
// - INVALID_ARGUMENT, with the field: the request is invalid.

void DescribeServer(const std::string& version,
                    inference::ServerMetadataResponse* metadata);
// Tells in `ready` whether the model is READY. If the model does not exist,
// sets `ready` to false and returns OK.
absl::Status IsReady(const prediction::TransportEnvironment& environment,
                     const inference::ModelReadyRequest& request,
                     inference::ModelReadyResponse* ready);
absl::Status Metadata(const prediction::TransportEnvironment& environment,
                      const inference::ModelMetadataRequest& request,
                      inference::ModelMetadataResponse* metadata,
                      observability::RequestRecord* record);
absl::Status Config(const prediction::TransportEnvironment& environment,
                    const inference::ModelConfigRequest& request,
                    inference::ModelConfigResponse* config,
                    observability::RequestRecord* record);
absl::Status Statistics(const prediction::TransportEnvironment& environment,
                        const inference::ModelStatisticsRequest& request,
                        inference::ModelStatisticsResponse* statistics,
                        observability::RequestRecord* record);
absl::Status Index(const prediction::TransportEnvironment& environment,
                   const inference::RepositoryIndexRequest& request,
                   inference::RepositoryIndexResponse* index,
                   observability::RequestRecord* record);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_MODEL_QUERIES_H_
