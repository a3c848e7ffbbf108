#ifndef SFMAMBA_SERVER_API_KSERVE_INFER_REQUEST_H_
#define SFMAMBA_SERVER_API_KSERVE_INFER_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "inference/grpc_service.pb.h"
#include "server/call/wire/wire_cursor.h"
#include "server/image/image_source.h"

namespace sfmamba::kserve {

// A ModelInferRequest is looked at before protobuf parses it, so that no
// message takes more memory than it has bytes. The elements of tensors stay
// where the transport received them.

struct InferWire {
  // The numbers of these fields. Counting ends at kMaxCounted.
  int inputs = 0;
  int outputs = 0;
  int raw_inputs = 0;
  // The position of the first input's `contents`, how often they were given,
  // and the position of the first raw_input_contents. A length of -1 means that
  // the field is missing.
  call::WireExtent contents = {0, -1};
  int contents_count = 0;
  call::WireExtent raw = {0, -1};
  // The part of the message that is parsed: no elements, the first input only,
  // and at most kMaxOutputs outputs.
  std::string rest;
};

constexpr int kMaxCounted = 1 << 16;
constexpr int kMaxOutputs = 16;
constexpr int64_t kMaxInferRestBytes = 64 << 10;

// Fills `wire` from a message that lies in `parts`, in one pass. Returns
// INVALID_ARGUMENT: MALFORMED_MESSAGE if these bytes are no message of the wire
// format, and INVALID_FIELD, naming the field, if it has too much beside its
// tensors' elements.
absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire);

// The images of a ModelInferRequest's input.
struct InferImages {
  // INVALID_ARGUMENT, naming the field, if the server does not take the input.
  // UNIMPLEMENTED if the input is in shared memory.
  absl::Status status;
  // The number of images in the shape, or 1 if the shape is invalid.
  int count = 1;
  // Where the images lie: in `copy` if that is not empty, else in the parts.
  // Empty if there is an error or more images than allowed.
  std::vector<call::WireExtent> extents;
  std::string copy;  // Typed numbers as raw bytes.
};

// Finds the images of a request whose elements lie in `parts`, at the positions
// that `wire` has. `message` is the rest of the request. It gets the index of
// each extent as raw_input_contents, and an empty `contents` if the input is
// typed.
InferImages FindImages(absl::Span<const absl::string_view> parts,
                       const InferWire& wire, int max_images,
                       inference::ModelInferRequest* message);

// Parses a request that lies in `parts` into `message` and `images`: see
// WalkInferRequest() and FindImages(). `message` is empty after an error.
absl::Status ReadInferRequest(absl::Span<const absl::string_view> parts,
                              int max_images, InferImages* images,
                              inference::ModelInferRequest* message);

// These are for requests whose images FindImages() has found.

// Whether the input is raw, so that the outputs must be raw too.
bool IsRaw(const inference::ModelInferRequest& message);
// Whether the images are files.
bool HasFiles(const inference::ModelInferRequest& message);
// Returns the i-th image with the index of its extent in place of its bytes. It
// has views of the message.
image::ImageSource ImageOf(const inference::ModelInferRequest& message, int i);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_REQUEST_H_
