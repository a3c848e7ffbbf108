#ifndef SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_
#define SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "server/call/wire/wire_cursor.h"

namespace sfmamba::call {

// Preprocesses a ClassifyRequest, DetectRequest or SegmentRequest before
// protobuf parses the message. Parsing therefore never needs more memory than
// the size of the message.
//
// The bytes of Image.encoded, PixelBuffer.data and Tensor.data stay in the
// received buffers. The message for protobuf has an index in place of these
// bytes. Protobuf therefore still decides how repeated values are merged or
// replaced.

struct WireLimits {
  int max_images = 64;
  // Maximum size of the message without the bytes of pictures.
  int64_t max_rest_bytes = 256 << 10;
};

struct WireRequest {
  // The number of images, counted up to kMaxImagesCounted. Images above
  // WireLimits::max_images are not in `rest`.
  int images = 0;
  // The message for protobuf, without unknown fields.
  std::string rest;
  // The pictures' bytes, in order of position.
  std::vector<WireExtent> extents;
};

constexpr int kMaxImagesCounted = 1 << 16;

// Fills `request` from the message in `parts`, in one pass. Returns
// INVALID_ARGUMENT with one of these reasons:
// - MALFORMED_MESSAGE: the bytes are not valid in the wire format.
// - INVALID_FIELD, with the field: the message without its pictures is too
//   large.
// Other errors, such as invalid UTF-8, are found by protobuf later.
absl::Status WalkRequest(absl::Span<const absl::string_view> parts,
                         const WireLimits& limits, WireRequest* request);

// Calls WalkRequest() with `max_images` and parses WireRequest::rest into
// `message`. `message` is empty after an error.
absl::Status ReadRequest(absl::Span<const absl::string_view> parts,
                         int max_images, WireRequest* request,
                         google::protobuf::Message* message);

// Encode and decode the index of an extent. WireRequest::rest has the encoded
// index in place of the picture's bytes.
std::string IndexBytes(uint32_t index);
int64_t ExtentIndex(absl::string_view bytes);

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_
