#ifndef SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_
#define SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/api/vision/from_proto.h"
#include "server/call/call.h"
#include "server/call/wire/wire_request.h"
#include "server/image/image_source.h"
#include "server/prediction/prediction_request.h"

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
  // Shares of `slices`, which make up a message, what lies at `extents`.
  PictureBytes(absl::Span<const grpc::Slice> slices,
               absl::Span<const call::WireExtent> extents);

  // Where the bytes of the extent of this index are, until Release(). If they
  // cross slices, they are there only once Join() was called.
  absl::string_view View(int64_t index);
  bool CrossesSlices(int64_t index) const {
    return fields_[index].pieces.size() > 1;
  }
  // Returns the bytes that cross slices where they are until Join() or
  // Release().
  std::vector<absl::string_view> Pieces(int64_t index) const;
  // Returns the bytes at this index without a copy. Not to be called after
  // Join() or Release().
  grpc::ByteBuffer Share(int64_t index) const { return fields_[index].owner; }
  // Copies bytes that cross slices into one buffer and gives up their share of
  // the slices. Several threads may join different indices at once.
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

// Replaces the index of an extent by the bytes that it stands for. Those of a
// file are there at once, because its header is read before it is admitted; a
// tensor's may be in several pieces; pixels are joined by ImageSource::fetch
// where they must be.
void SetBytes(PictureBytes* pictures, image::ImageSource* source);

// Parses all of a message but its pictures, whose bytes stay where they were
// received. See call::Call::ReadPictures(). Takes the bytes of `received`,
// which is empty afterwards.
std::unique_ptr<call::Pictures> ReadPictures(
    grpc::ByteBuffer* received, int max_images,
    google::protobuf::Message* message);

// A request as it came by the wire: checked, the small rest of it parsed, and
// the bytes of its pictures where they were received. Thread-compatible.
template <typename Request>
class ReceivedRequest {
 public:
  // Takes the bytes of `message`, which is empty afterwards. With more images
  // than `max_images`, none but these are parsed.
  ReceivedRequest(grpc::ByteBuffer* message, int max_images)
      : bytes_(message->Length()), status_(Read(message, max_images)) {}

  // INVALID_ARGUMENT, as WalkRequest() says, if the message is refused.
  const absl::Status& status() const { return status_; }
  // Empty if it is refused.
  const Request& message() const { return message_; }

  // The request in a prediction's words. Its views are of this.
  prediction::PredictionRequest Translate(observability::Method method = {},
                                          prediction::CallInfo call = {}) {
    prediction::PredictionRequest result = api::FromProto(message_);
    result.method = method;
    result.call = std::move(call);
    result.images = images_;
    result.message_bytes = bytes_;
    result.image = [this](int i) {
      absl::StatusOr<image::ImageSource> source =
          api::FromProto(message_.images(i));
      if (source.ok()) SetBytes(&pictures_, &*source);
      return source;
    };
    return result;
  }

  // Frees the pictures' bytes: no view of them is used any more.
  void ReleasePictures() { pictures_.Release(); }

 private:
  absl::Status Read(grpc::ByteBuffer* message, int max_images) {
    const MessageSlices received(message);
    if (!received.ok) return call::NotParsed();
    call::WireRequest wire;
    const absl::Status status =
        call::ReadRequest(received.parts, max_images, &wire, &message_);
    images_ = wire.images;
    if (status.ok()) pictures_ = PictureBytes(received.slices, wire.extents);
    return status;
  }

  const int64_t bytes_;
  int images_ = 0;
  Request message_;
  PictureBytes pictures_;
  absl::Status status_;  // Last: the others are filled by then.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_RECEIVED_REQUEST_H_
