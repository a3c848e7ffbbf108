#ifndef SFMAMBA_SERVER_BASE_GRPC_STATUS_H_
#define SFMAMBA_SERVER_BASE_GRPC_STATUS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "model/result.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba {

// Fills `result` with the best categories by `params`, which must be valid for
// as many classes as there are logits. The softmax is over all classes,
// whatever the filter. `labels` has one entry for each class.
void ToProto(const Classification& classification,
             const v1::ClassifyParams& params,
             const std::vector<std::string>& labels,
             v1::ClassifyResult* result);

// With ErrorInfo always (reason: the code's name where MakeError gave none),
// and BadRequest and RetryInfo where they apply.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The same as the call's status, its details in grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Adds the trailer grpc-retry-pushback-ms if `status` carries a retry hint.
void AddRetryPushback(const absl::Status& status,
                      grpc::ServerContextBase* context);

void ToProto(absl::Duration duration, google::protobuf::Duration* proto);

// Any value that is a valid protobuf Duration; saturates.
absl::Duration FromProto(const google::protobuf::Duration& proto);

}  // namespace sfmamba

#endif  // SFMAMBA_SERVER_BASE_GRPC_STATUS_H_
