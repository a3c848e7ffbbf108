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

// The bytes of a message, in the slices in which gRPC received them.
//
// A grpc::ByteBuffer must free the memory, not the last grpc::Slice. In gRPC
// 1.51, grpc_slice_unref() does not create an ExecCtx. On a thread outside
// gRPC, the function then dereferences a null pointer if gRPC is low on memory.
struct MessageSlices {
  // Moves the bytes out of `message`, which is empty afterwards.
  explicit MessageSlices(grpc::ByteBuffer* message);

  grpc::ByteBuffer owner;  // First, so that it is destroyed after the slices.
  std::vector<grpc::Slice> slices;
  std::vector<absl::string_view> parts;  // Point into the slices.
  bool ok = true;
};

// The bytes of a message's pictures, in the received buffers. See
// MessageSlices. Thread-compatible.
class PictureBytes {
 public:
  PictureBytes() = default;
  // Shares the bytes at `extents` of the message in `slices`.
  PictureBytes(absl::Span<const grpc::Slice> slices,
               absl::Span<const call::WireExtent> extents);

  // Returns the bytes of extent `index`. Valid until Release(). If the bytes
  // span several slices, the view is filled only by Join().
  absl::string_view View(int64_t index);
  bool CrossesSlices(int64_t index) const {
    return fields_[index].pieces.size() > 1;
  }
  // Returns the pieces of an extent that spans several slices. Valid until
  // Join() or Release().
  std::vector<absl::string_view> Pieces(int64_t index) const;
  // Returns the bytes of extent `index` without a copy. Must be called before
  // Join() and Release().
  grpc::ByteBuffer Share(int64_t index) const { return fields_[index].owner; }
  // Copies the pieces of an extent into one buffer and releases the slices of
  // the extent. Different indices may be joined concurrently.
  void Join(int64_t index);

  void Release() { fields_.clear(); }

 private:
  struct Field {
    size_t length = 0;
    grpc::ByteBuffer owner;           // Destroyed after the pieces.
    std::vector<grpc::Slice> pieces;  // Empty after Join().
    std::unique_ptr<char[]> joined;   // Null if there is only one piece.
  };
  std::vector<Field> fields_;
};

// Parses a ClassifyRequest, DetectRequest, SegmentRequest or ModelInferRequest
// without its pictures. The picture bytes stay in the received buffers.
// `received` is empty afterwards. See call::Call::ReadPictures().
std::unique_ptr<call::Pictures> ReadPictures(
    grpc::ByteBuffer* received, int max_images,
    google::protobuf::Message* message);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_
