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

// Protobuf parses only a reduced copy of a ModelInferRequest. The copy contains
// no tensor elements, so parsing never needs more memory than the size of the
// message. The elements stay in the received buffers. WalkInferRequest()
// creates the copy.

struct InferWire {
  // The counts of inputs, outputs and raw_input_contents in the message. If a
  // count reaches kMaxCounted, the rest of the message is not read.
  int inputs = 0;
  int outputs = 0;
  int raw_inputs = 0;
  // The position and length of the first input's protobuf field `contents` in
  // the message. If the client sent this field several times, this is the range
  // of the last one. If the field is missing, the length is -1.
  call::WireExtent contents = {0, -1};
  // How often the client sent the first input's field `contents`.
  int contents_count = 0;
  // The position and length of the first raw_input_contents in the message. If
  // there is none, the length is -1.
  call::WireExtent raw = {0, -1};
  // The reduced copy of the message, which protobuf parses. It contains only
  // the first input, at most kMaxOutputs outputs and no tensor elements.
  std::string rest;
};

constexpr int kMaxCounted = 1 << 16;
constexpr int kMaxOutputs = 16;
constexpr int64_t kMaxInferRestBytes = 64 << 10;

// Fills `wire` from the message in `parts`, in one pass. Returns
// INVALID_ARGUMENT with one of these reasons:
// - MALFORMED_MESSAGE: the bytes are not valid in the wire format.
// - INVALID_FIELD, with the field: the reduced copy would be larger than
//   kMaxInferRestBytes.
absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire);

// The images of a ModelInferRequest.
struct InferImages {
  // OK, or one of these errors:
  // - INVALID_ARGUMENT, with the name of the invalid field: the input is
  //   malformed, or the server does not support the input.
  // - UNIMPLEMENTED: the input is in shared memory.
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
// contains the ranges of the tensor elements in `parts`. `message` must be the
// parsed InferWire::rest.
//
// Appends one entry to message->raw_input_contents for each image. Instead of
// the image's bytes, the entry contains the image's index in
// InferImages::extents, encoded by call::IndexBytes(). If the tensor elements
// arrived in the input's field `contents`, also adds an empty `contents` to
// `message`, so that IsRaw() returns false.
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

// Returns true if the client sent the input's elements in raw_input_contents.
// The response must then have its outputs in raw_output_contents.
bool IsRaw(const inference::ModelInferRequest& message);
// Returns true if the images are encoded files.
bool HasFiles(const inference::ModelInferRequest& message);
// Returns image `i`. The returned object does not contain the image's bytes,
// but the index that FindImages() has stored in place of the bytes. The caller
// then calls call::Pictures::SetBytes(), which replaces the index with the
// bytes. The returned object points into `message`.
image::ImageSource ImageOf(const inference::ModelInferRequest& message, int i);

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_API_KSERVE_INFER_REQUEST_H_
