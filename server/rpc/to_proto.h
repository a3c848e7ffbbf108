#ifndef SFMAMBA_SERVER_RPC_TO_PROTO_H_
#define SFMAMBA_SERVER_RPC_TO_PROTO_H_

#include "server/prediction/answer.h"
#include "server/prediction/prediction.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// Translate a prediction's answers into sfmamba.v1's messages. Encoded maps and
// masks are moved, not copied.

void ToProto(prediction::ClassificationAnswer answer,
             v1::ClassifyResult* result);
void ToProto(prediction::DetectionAnswer answer, v1::DetectResult* result);
void ToProto(prediction::SegmentationAnswer answer, v1::SegmentResult* result);
void ToProto(const prediction::Timing& timing, v1::Timing* result);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_TO_PROTO_H_
