#ifndef SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_
#define SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/call/call.h"
#include "server/call/wire/wire_request.h"
#include "server/image/image_source.h"

namespace sfmamba::rpc {

// The bytes of a message in the slices that they were received in.
//
// The memory must be freed by a grpc::ByteBuffer, not by the last grpc::Slice:
// on a thread that is not gRPC's that follows a null pointer if gRPC's memory
// is short (grpc_slice_unref() of gRPC 1.51 makes no ExecCtx).
struct MessageSlices {
  // Takes the bytes of `message`, which is empty afterwards.
  explicit MessageSlices(grpc::ByteBuffer* message);

  grpc::ByteBuffer owner;  // First: it is destroyed after the slices.
  std::vector<grpc::Slice> slices;
  std::vector<absl::string_view> parts;  // Views of the slices.
  bool ok = true;
};

// The bytes of a message's pictures, in the memory that they were received in:
// see MessageSlices. Thread-compatible.
class PictureBytes {
 public:
  PictureBytes() = default;
  // Shares the bytes at `extents` of a message, which `slices` make up.
  PictureBytes(absl::Span<const grpc::Slice> slices,
               absl::Span<const call::WireExtent> extents);

  // Returns where the bytes of the extent of this index are, until Release().
  // If they cross slices, they are there only after Join().
  absl::string_view View(int64_t index);
  bool CrossesSlices(int64_t index) const {
    return fields_[index].pieces.size() > 1;
  }
  // Returns the pieces of bytes that cross slices, until Join() or Release().
  std::vector<absl::string_view> Pieces(int64_t index) const;
  // Returns the bytes at this index without a copy. Called before Join() and
  // Release().
  grpc::ByteBuffer Share(int64_t index) const { return fields_[index].owner; }
  // Copies bytes that cross slices into one buffer and releases their share of
  // the slices. Several threads may join different indices at the same time.
  void Join(int64_t index);

  void Release() { fields_.clear(); }

 private:
  struct Field {
    size_t length = 0;
    grpc::ByteBuffer owner;           // Frees the memory, after the pieces.
    std::vector<grpc::Slice> pieces;  // Empty once joined.
    std::unique_ptr<char[]> joined;   // Null if there is but one piece.
  };
  std::vector<Field> fields_;
};

// Parses all of a ClassifyRequest, DetectRequest, SegmentRequest or
// ModelInferRequest but its pictures, whose bytes stay where they were
// received. See call::Call::ReadPictures(). Takes the bytes of `received`,
// which is empty afterwards.
std::unique_ptr<call::Pictures> ReadPictures(
    grpc::ByteBuffer* received, int max_images,
    google::protobuf::Message* message);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_
