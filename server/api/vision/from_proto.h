#ifndef SFMAMBA_SERVER_API_VISION_FROM_PROTO_H_
#define SFMAMBA_SERVER_API_VISION_FROM_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "server/image/image_source.h"
#include "server/prediction/prediction_request.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::api {

// Translate sfmamba.v1's messages into a prediction's own types, which hold
// views of the messages. Nothing is checked but what those types cannot
// express, such as an enumerator that is not known: INVALID_ARGUMENT with
// reason INVALID_FIELD, and a field relative to the request
// ("options.priority") or to the image (".orientation").

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image);

// Fills what it can even if it returns an error.
absl::Status FromProto(const v1::RequestOptions& options,
                       prediction::RequestOptions* result);

// Returns INVALID_ARGUMENT, naming the field after `prefix`, if a field of the
// message, or of one within it, has a number that no enumerator has.
absl::Status CheckEnums(const std::string& prefix,
                        const google::protobuf::Message& message);

// A whole ClassifyRequest, DetectRequest or SegmentRequest.
template <typename Request>
prediction::PredictionRequest FromProto(const Request& request) {
  prediction::PredictionRequest result;
  result.model = request.model();
  result.request_id = request.request_id();
  result.images = request.images_size();
  result.image = [&request](int i) { return FromProto(request.images(i)); };
  result.malformed = FromProto(request.options(), &result.options);
  result.malformed.Update(CheckEnums("params.", request.params()));
  result.params = request.params();
  result.message_bytes = request.ByteSizeLong();
  return result;
}

}  // namespace sfmamba::api

#endif  // SFMAMBA_SERVER_API_VISION_FROM_PROTO_H_
