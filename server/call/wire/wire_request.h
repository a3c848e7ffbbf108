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

// A ClassifyRequest, DetectRequest or SegmentRequest is looked at before
// protobuf parses it, so that no message takes more memory than it has bytes.
//
// The bytes of pictures (Image.encoded, PixelBuffer.data and Tensor.data) stay
// where they are. The message that protobuf parses has the index of an extent
// in their place. So protobuf alone decides what the fields mean, which of
// several is the last and which messages are merged.

struct WireLimits {
  int max_images = 64;
  // Most bytes of the message outside pictures.
  int64_t max_rest_bytes = 256 << 10;
};

struct WireRequest {
  // The number of images. Images beyond the allowed number are not in `rest`,
  // and counting ends at kMaxImagesCounted.
  int images = 0;
  // The message that protobuf parses, without unknown fields.
  std::string rest;
  // In the order of their positions.
  std::vector<WireExtent> extents;
};

constexpr int kMaxImagesCounted = 1 << 16;

// Fills `request` from a message that lies in `parts`, in one pass. Returns
// INVALID_ARGUMENT: MALFORMED_MESSAGE if these bytes are no message of the wire
// format, and INVALID_FIELD, naming the field, if it is too large without its
// pictures. Protobuf itself finds other errors, such as text that is not UTF-8.
absl::Status WalkRequest(absl::Span<const absl::string_view> parts,
                         const WireLimits& limits, WireRequest* request);

// Does WalkRequest() with at most `max_images` and parses the rest into
// `message`, which is empty after an error.
absl::Status ReadRequest(absl::Span<const absl::string_view> parts,
                         int max_images, WireRequest* request,
                         google::protobuf::Message* message);

// A message parsed from WireRequest::rest has the index of an extent in place
// of a picture's bytes. These convert the index into such bytes, and back.
std::string IndexBytes(uint32_t index);
int64_t ExtentIndex(absl::string_view bytes);

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_REQUEST_H_
