#ifndef SFMAMBA_SERVER_RPC_TO_PROTO_H_
#define SFMAMBA_SERVER_RPC_TO_PROTO_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/prediction/answer.h"
#include "server/prediction/prediction.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// Translate a prediction's answers into sfmamba.v1's messages. Encoded maps and
// masks are moved, not copied.

void ToProto(prediction::ClassificationAnswer answer,
             v1::ClassifyResult* result);
void ToProto(prediction::DetectionAnswer answer, v1::DetectResult* result);
void ToProto(prediction::SegmentationAnswer answer, v1::SegmentResult* result);
void ToProto(const prediction::Timing& timing, v1::Timing* result);

// Says what is known of a version now.
void ToProto(const repository::ModelVersion& version, bool with_classes,
             v1::Model* model);

// Fills a page with those of `all` after `page_token`, a name that an earlier
// page ended with. INVALID_ARGUMENT with reason INVALID_FIELD if there is no
// such name, or if the page's size is negative.
absl::Status FillPage(
    const v1::ListModelsRequest& request,
    const std::vector<std::shared_ptr<repository::ModelVersion>>& all,
    v1::ListModelsResponse* response);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_TO_PROTO_H_
