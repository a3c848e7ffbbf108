#ifndef SFMAMBA_SERVER_KSERVE_RECEIVED_INFERENCE_H_
#define SFMAMBA_SERVER_KSERVE_RECEIVED_INFERENCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "inference/grpc_service.pb.h"
#include "server/call/wire/wire_cursor.h"
#include "server/image/image_source.h"
#include "server/kserve/tensor_elements.h"
#include "server/rpc/wire/received_request.h"

namespace sfmamba::kserve {

// A ModelInferRequest, looked at before protobuf parses it, so that no message
// takes more memory than it has bytes. Tensors' elements stay where they are.

struct InferWire {
  // Numbers of these fields. Counting ends at kMaxCounted.
  int inputs = 0;
  int outputs = 0;
  int raw_inputs = 0;
  // Position of the first input's `contents` and how often they were given, and
  // position of the first raw_input_contents. A length of -1: it is missing.
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

// A received ModelInferRequest: its images' bytes stay where they were
// received, and the small rest is parsed. Only typed numbers are copied.
// Thread-compatible.
class ReceivedInference {
 public:
  // Takes the bytes of `message`, which is empty afterwards. With more images
  // than `max_images`, none of them is looked at.
  ReceivedInference(grpc::ByteBuffer* message, int max_images);

  // INVALID_ARGUMENT if the message is malformed: then all else is empty.
  const absl::Status& status() const { return status_; }
  // INVALID_ARGUMENT, naming the field, if its input is not one that this
  // server takes; UNIMPLEMENTED if it names shared memory.
  const absl::Status& input_status() const { return input_status_; }

  // The message with its first input only, and without contents.
  const inference::ModelInferRequest& message() const { return message_; }
  // Whether the input is raw, and so the outputs must be.
  bool raw() const { return wire_.raw_inputs > 0; }
  // Whether the images are files.
  bool files() const { return type_.is_bytes(); }
  // The number of images in the shape; 0 if the shape is invalid.
  int images() const { return images_; }
  // The bytes that this holds, or will.
  int64_t bytes() const { return bytes_; }

  // Returns the i-th image, which has views of this object's bytes.
  absl::StatusOr<image::ImageSource> Image(int i);
  // Frees the images' bytes: no view of them is used any more.
  void ReleaseImages() { pictures_.Release(); }

 private:
  absl::Status Read(absl::Span<const absl::string_view> parts);
  absl::Status CheckInput();
  // Finds the elements of the images.
  absl::Status Split(absl::Span<const grpc::Slice> slices,
                     absl::Span<const absl::string_view> parts);
  absl::Status CopyTypedNumbers(absl::Span<const absl::string_view> parts);

  absl::Span<const int64_t> shape() const;

  int64_t bytes_;
  InferWire wire_;
  inference::ModelInferRequest message_;
  ElementType type_;
  int images_ = 0;
  rpc::PictureBytes pictures_;
  absl::Status status_;
  absl::Status input_status_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_RECEIVED_INFERENCE_H_
