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

// The bytes of a message as gRPC received them, in one or more buffers called
// slices.
//
// The grpc::ByteBuffer `owner` refers to the same memory as the slices. It is
// destroyed after the slices, so `owner` releases the last reference to the
// memory. The reason for this order is a fault of gRPC 1.51. To free the memory
// safely, gRPC needs an ExecCtx (gRPC's execution context of a thread). If gRPC
// is short of memory and there is no ExecCtx, gRPC dereferences a null pointer.
// Threads outside gRPC usually have no ExecCtx. The destructor of
// grpc::ByteBuffer creates an ExecCtx, but the destructor of a slice does not.
struct MessageSlices {
  // Moves the bytes out of `message`, which is empty afterwards.
  explicit MessageSlices(grpc::ByteBuffer* message);

  // This member comes first, so that it is destroyed after the slices.
  grpc::ByteBuffer owner;
  std::vector<grpc::Slice> slices;
  std::vector<absl::string_view> parts;  // Views of the slices, in order.
  bool ok = true;
};

// Holds the bytes of the pictures in a message. Each picture is one field,
// whose bytes may lie in several slices. See MessageSlices. Thread-compatible.
class PictureBytes {
 public:
  PictureBytes() = default;
  // `slices` contain a message. `extents[i]` is the range of bytes of picture i
  // in this message. The ranges must be in ascending order. This object and the
  // caller share the memory of the slices.
  PictureBytes(absl::Span<const grpc::Slice> slices,
               absl::Span<const call::WireExtent> extents);

  // Returns the bytes of picture `index`. The view is valid until Release(). If
  // the bytes lie in several slices, the view refers to a buffer whose content
  // is undefined until Join() fills it.
  absl::string_view View(int64_t index);
  bool CrossesSlices(int64_t index) const {
    return fields_[index].pieces.size() > 1;
  }
  // Returns the bytes of picture `index` as views, one for each slice in which
  // bytes of the picture lie. The views are valid until Join() or Release().
  std::vector<absl::string_view> Pieces(int64_t index) const;
  // Returns a buffer that shares the bytes of picture `index`. May be called
  // only before Join() and Release().
  grpc::ByteBuffer Share(int64_t index) const { return fields_[index].owner; }
  // Copies the bytes of picture `index` into the buffer to which View() refers.
  // Then releases the picture's slices. May be called only if the picture lies
  // in several slices (see CrossesSlices()) and after View(). Several threads
  // may join different pictures at the same time.
  void Join(int64_t index);

  void Release() { fields_.clear(); }

 private:
  struct Field {
    size_t length = 0;
    // This member precedes `pieces`, so that it is destroyed after `pieces`.
    grpc::ByteBuffer owner;
    std::vector<grpc::Slice> pieces;  // Empty after Join().
    // The buffer for Join(). Null before View() and if the picture lies in one
    // slice.
    std::unique_ptr<char[]> joined;
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
