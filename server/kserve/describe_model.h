#ifndef SFMAMBA_SERVER_KSERVE_DESCRIBE_MODEL_H_
#define SFMAMBA_SERVER_KSERVE_DESCRIBE_MODEL_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "inference/grpc_service.pb.h"
#include "inference/model_config.pb.h"
#include "server/kserve/published_model.h"

namespace sfmamba::kserve {

// Fills a model's name, version and tensors. UNAVAILABLE unless it is READY.
absl::Status DescribeMetadata(const PublishedModel& model,
                              inference::ModelMetadataResponse* metadata);

// Does what DescribeMetadata() does and adds the batching. A request has at
// most `max_images`, and by default waits for `default_timeout`.
absl::Status DescribeConfig(const PublishedModel& model, int max_images,
                            absl::Duration default_timeout,
                            inference::ModelConfig* config);

// Fills the counts and times of what a model has answered since the start.
void DescribeStatistics(const PublishedModel& model,
                        inference::ModelStatistics* statistics);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_DESCRIBE_MODEL_H_
