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
// SegmentRequest. The functions below create this copy. It contains neither
// pictures nor unknown fields, and its size is limited. Parsing the copy
// therefore needs little memory, even if the message is large.
//
// The copy does not contain the bytes of the fields Image.encoded,
// PixelBuffer.data and Tensor.data. These bytes stay in the received buffers.
// In the copy, each of these fields contains an index instead. If a client
// sends a field several times, each of its values has its own index. Protobuf
// then decides which value counts.

struct WireLimits {
  int max_images = 64;
  // The maximum size of WireRequest::rest in bytes.
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
// - INVALID_FIELD: the reduced copy would exceed limits.max_rest_bytes. The
//   error names the field of the request at which the limit is exceeded.
// Protobuf finds other errors later, such as invalid UTF-8.
absl::Status WalkRequest(absl::Span<const absl::string_view> parts,
                         const WireLimits& limits, WireRequest* request);

// Calls WalkRequest() with `max_images` and parses WireRequest::rest into
// `message`. `message` is empty after an error.
absl::Status ReadRequest(absl::Span<const absl::string_view> parts,
                         int max_images, WireRequest* request,
                         google::protobuf::Message* message);

// WireRequest::rest contains an encoded index in place of a picture's bytes.
// The index is the position of the picture in WireRequest::extents.
// IndexBytes() encodes an index, and ExtentIndex() decodes it.
std::string IndexBytes(uint32_t index);
int64_t ExtentIndex(absl::string_view bytes);

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_
