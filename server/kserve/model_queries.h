#ifndef SFMAMBA_SERVER_KSERVE_MODEL_QUERIES_H_
#define SFMAMBA_SERVER_KSERVE_MODEL_QUERIES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"

namespace sfmamba::kserve {

// Fills what is known of the server itself.
void DescribeServer(absl::string_view version,
                    inference::ServerMetadataResponse* metadata);

// The answers to what clients ask about models, by whatever transport. Each
// fills the response and says in `record` which model was asked about, or
// returns an error: NOT_FOUND, UNAVAILABLE unless the model is READY, or
// INVALID_ARGUMENT, naming the field. Thread-safe.
class ModelQueries {
 public:
  // `environment` outlives the queries.
  explicit ModelQueries(const prediction::TransportEnvironment& environment)
      : env_(environment) {}

  // A model that is not there is not ready.
  absl::Status Ready(const inference::ModelReadyRequest& asked,
                     inference::ModelReadyResponse* ready) const;
  absl::Status Metadata(const inference::ModelMetadataRequest& asked,
                        inference::ModelMetadataResponse* metadata,
                        observability::RequestRecord* record) const;
  absl::Status Config(const inference::ModelConfigRequest& asked,
                      inference::ModelConfigResponse* config,
                      observability::RequestRecord* record) const;
  absl::Status Statistics(const inference::ModelStatisticsRequest& asked,
                          inference::ModelStatisticsResponse* statistics,
                          observability::RequestRecord* record) const;
  absl::Status Index(const inference::RepositoryIndexRequest& asked,
                     inference::RepositoryIndexResponse* index,
                     observability::RequestRecord* record) const;

 private:
  const prediction::TransportEnvironment& env_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_MODEL_QUERIES_H_
