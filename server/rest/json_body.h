#ifndef SFMAMBA_SERVER_REST_JSON_BODY_H_
#define SFMAMBA_SERVER_REST_JSON_BODY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {

// JSON of more bytes than this, without its pictures, is refused. No request
// needs so many, and a parsed tree takes much more memory than its text.
inline constexpr size_t kMaxJsonRest = 256 << 10;
// Strings of more bytes than this must be a picture in base64.
inline constexpr size_t kMaxJsonString = 1024;

// Returns the bytes of an image's source; null if it has none.
std::string* BytesOf(v1::Image* image);

// Reads a ClassifyRequest, DetectRequest or SegmentRequest from JSON by
// protobuf's mapping. Base64 may be of either alphabet, padded or not, and
// broken into lines. Takes memory for the pictures beside the JSON's own.
//
// INVALID_ARGUMENT with reason MALFORMED_MESSAGE if the body is no JSON, if a
// field is not known, or if a value or a long string is not what it must be.
absl::Status ReadJson(std::string json, google::protobuf::Message* request);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_JSON_BODY_H_
