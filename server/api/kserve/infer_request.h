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

// Protobuf parses only a reduced copy of a ModelInferRequest, which has no
// elements of tensors. The functions below create this copy. Parsing therefore
// never needs more memory than the size of the message. The elements stay in
// the received buffers.

struct InferWire {
  // These members are the numbers of inputs, outputs and raw_input_contents in
  // the message. Counting stops at kMaxCounted.
  int inputs = 0;
  int outputs = 0;
  int raw_inputs = 0;
  // `contents` is the range of bytes of the field `contents` in the first
  // input. If the field is sent several times, `contents` is the last range and
  // `contents_count` is the number of times. `raw` is the range of the first
  // raw_input_contents. A length of -1 means that the field is missing.
  call::WireExtent contents = {0, -1};
  int contents_count = 0;
  call::WireExtent raw = {0, -1};
  // The reduced copy of the message for protobuf. Contains only the first
  // input, at most kMaxOutputs outputs and no elements.
  std::string rest;
};

constexpr int kMaxCounted = 1 << 16;
constexpr int kMaxOutputs = 16;
constexpr int64_t kMaxInferRestBytes = 64 << 10;

// Fills `wire` from the message in `parts`, in one pass. Returns
// INVALID_ARGUMENT with one of these reasons:
// - MALFORMED_MESSAGE: the bytes are not valid in the wire format.
// - INVALID_FIELD, with the field: the message without tensor elements is too
//   large.
absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire);

// The images of a ModelInferRequest.
struct InferImages {
  // OK, or the error of the input. The error is INVALID_ARGUMENT with the field
  // if the server does not support the input. It is UNIMPLEMENTED if the input
  // is in shared memory.
  absl::Status status;
  // The number of images according to the input's shape, or 1 if the shape is
  // invalid.
  int count = 1;
  // The range of bytes of each image. The ranges are in `copy`, or in the
  // received message if `copy` is empty. There are no ranges after an error or
  // if there are too many images.
  std::vector<call::WireExtent> extents;
  // If the elements arrived as numbers in the field `contents`, this member
  // holds them as raw bytes. Otherwise it is empty.
  std::string copy;
};

// Finds the images of a request. `parts` is the received message, and `wire`
// contains the ranges of the elements. `message` must be the parsed
// InferWire::rest. Stores the index of each image in raw_input_contents of
// `message`. If the input's elements arrived in its field `contents`, also adds
// an empty `contents` to `message`, so that IsRaw() returns false.
InferImages FindImages(absl::Span<const absl::string_view> parts,
                       const InferWire& wire, int max_images,
                       inference::ModelInferRequest* message);

// Parses a request in `parts` into `message` and `images`. See
// WalkInferRequest() and FindImages(). `message` is empty after an error.
absl::Status ReadInferRequest(absl::Span<const absl::string_view> parts,
                              int max_images, InferImages* images,
                              inference::ModelInferRequest* message);

// For the functions below, FindImages() must have found the images of
// `message`.

// Returns true if the input's elements are in raw_input_contents. The response
// must then have its outputs in raw_output_contents.
bool IsRaw(const inference::ModelInferRequest& message);
// Returns true if the images are encoded files.
bool HasFiles(const inference::ModelInferRequest& message);
// Returns image `i` with an index in place of its bytes.
// call::Pictures::SetBytes() replaces the index. The returned object points
// into `message`.
image::ImageSource ImageOf(const inference::ModelInferRequest& message, int i);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_REQUEST_H_
