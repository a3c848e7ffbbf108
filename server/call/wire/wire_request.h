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

// Protobuf parses only a reduced copy of a ClassifyRequest, DetectRequest or
// SegmentRequest. The functions below create this copy. Parsing therefore never
// needs more memory than the size of the message.
//
// The copy does not contain the bytes of the fields Image.encoded,
// PixelBuffer.data and Tensor.data. These bytes stay in the received buffers.
// In the copy, each of these fields contains an index instead. If a client
// sends a field several times, each of its values has its own index. Protobuf
// then decides which value counts.

struct WireLimits {
  int max_images = 64;
  // Maximum size of the message without the bytes of pictures.
  int64_t max_rest_bytes = 256 << 10;
};

struct WireRequest {
  // The number of images in the request. Counting stops at kMaxImagesCounted.
  // Only the first WireLimits::max_images images are in `rest`.
  int images = 0;
  // The reduced copy of the message for protobuf. Contains no unknown fields.
  std::string rest;
  // The ranges of the pictures' bytes in the received message, in ascending
  // order.
  std::vector<WireExtent> extents;
};

constexpr int kMaxImagesCounted = 1 << 16;

// Fills `request` from the message in `parts`, in one pass. Returns
// INVALID_ARGUMENT with one of these reasons:
// - MALFORMED_MESSAGE: the bytes are not valid in the wire format.
// - INVALID_FIELD, with the field: the message without its pictures is too
//   large.
// Protobuf finds other errors later, such as invalid UTF-8.
absl::Status WalkRequest(absl::Span<const absl::string_view> parts,
                         const WireLimits& limits, WireRequest* request);

// Calls WalkRequest() with `max_images` and parses WireRequest::rest into
// `message`. `message` is empty after an error.
absl::Status ReadRequest(absl::Span<const absl::string_view> parts,
                         int max_images, WireRequest* request,
                         google::protobuf::Message* message);

// Encode and decode an index into WireRequest::extents. WireRequest::rest
// contains the encoded index in place of a picture's bytes.
std::string IndexBytes(uint32_t index);
int64_t ExtentIndex(absl::string_view bytes);

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_
