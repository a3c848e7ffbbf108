#ifndef SFMAMBA_SERVER_REST_JSON_BODY_H_
#define SFMAMBA_SERVER_REST_JSON_BODY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {

// The maximum size in bytes of a JSON request without its pictures. No valid
// request needs more. The limit exists because parsed JSON occupies much more
// memory than its text.
inline constexpr size_t kMaxJsonRest = 256 << 10;
// If a string in the JSON has more bytes than this, it must be a picture in
// base64.
inline constexpr size_t kMaxJsonString = 1024;

// Returns the field of `image` that contains the picture's bytes. Returns null
// if no such field is set.
std::string* BytesOf(v1::Image* image);

// Parses a ClassifyRequest, DetectRequest or SegmentRequest from protobuf's
// JSON mapping. Base64 may use the standard or the URL-safe alphabet, with or
// without padding and line breaks. Needs memory for the decoded pictures in
// addition to `json`.
//
// Returns INVALID_ARGUMENT with reason MALFORMED_MESSAGE in these cases:
// - The body is not valid JSON.
// - A field is unknown.
// - A value has the wrong type.
// - A long string is not a picture in base64.
absl::Status ReadJson(std::string json, google::protobuf::Message* request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_JSON_BODY_H_
