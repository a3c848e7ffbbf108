#ifndef SFMAMBA_SERVER_RPC_WIRE_FROM_PROTO_H_
#define SFMAMBA_SERVER_RPC_WIRE_FROM_PROTO_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/image/image_source.h"
#include "server/prediction/prediction_request.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// Translate sfmamba.v1's messages into a prediction's own types, which hold
// views of the messages. Nothing is checked but what those types cannot
// express, such as an enumerator that is not known: INVALID_ARGUMENT with
// reason INVALID_FIELD, and a field relative to the request
// ("options.priority") or to the image (".orientation").

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image);

// Fill what they can even if they return an error.
absl::Status FromProto(const v1::RequestOptions& options,
                       prediction::RequestOptions* result);
absl::Status FromProto(const v1::ClassifyParams& params,
                       prediction::TaskParams* result);
absl::Status FromProto(const v1::DetectParams& params,
                       prediction::TaskParams* result);
absl::Status FromProto(const v1::SegmentParams& params,
                       prediction::TaskParams* result);

// A whole ClassifyRequest, DetectRequest or SegmentRequest.
template <typename Request>
prediction::PredictionRequest FromProto(const Request& request) {
  prediction::PredictionRequest result;
  result.model = request.model();
  result.request_id = request.request_id();
  result.images = request.images_size();
  result.image = [&request](int i) { return FromProto(request.images(i)); };
  result.malformed = FromProto(request.options(), &result.options);
  result.malformed.Update(FromProto(request.params(), &result.params));
  result.message_bytes = request.ByteSizeLong();
  return result;
}

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_FROM_PROTO_H_
