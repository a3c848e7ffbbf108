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

// The functions below convert messages of sfmamba.v1 to the types of a
// prediction. The results point into the messages. The functions check only
// values that the target types cannot represent, such as unknown enum values.
// For such a value, they return INVALID_ARGUMENT with reason INVALID_FIELD.
// Errors in an image name a field of the image, such as ".orientation". Other
// errors name a field of the request, such as "options.priority".

absl::StatusOr<image::ImageSource> FromProto(const v1::Image& image);

// Converts the options of a request. After an error, `result` contains the
// options that are valid.
absl::Status FromProto(const v1::RequestOptions& options,
                       prediction::RequestOptions* result);

// If an enum field of the message or of a nested message has an unknown value,
// returns INVALID_ARGUMENT. The error names the field, preceded by `prefix`.
absl::Status CheckEnums(const std::string& prefix,
                        const google::protobuf::Message& message);

// Converts a ClassifyRequest, DetectRequest or SegmentRequest. `request` must
// outlive the result.
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
