#include "server/call/wire/wire_request.h"

#include <cstring>

#include "server/call/wire/wire_cursor.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::call {
namespace {

constexpr uint32_t kImages = 2;

// Defines how a field of a message is processed.
enum class Action {
  // Skips the field, because it is unknown.
  kDrop,
  // Copies the field to `rest`.
  kKeep,
  // Writes an index to `rest` in place of the field's bytes, which are a
  // picture.
  kExtent,
  // Processes each field of the nested message.
  kMessage,
};

enum class Message { kImage, kPixelBuffer, kTensor };

// Returns how a field is processed. The wire type matters because protobuf
// treats a known field with an unexpected wire type as an unknown field.
Action ActionOf(Message message, uint32_t number, bool length_delimited) {
  switch (message) {
    case Message::kImage:
      if (number == 1 && length_delimited) return Action::kExtent;
      if (number <= 3 && length_delimited) return Action::kMessage;
      return number == 4 || number == 5 ? Action::kKeep : Action::kDrop;
    case Message::kPixelBuffer:
      if (number == 5 && length_delimited) return Action::kExtent;
      return number <= 4 ? Action::kKeep : Action::kDrop;
    case Message::kTensor:
      if (number == 3 && length_delimited) return Action::kExtent;
      return number <= 2 ? Action::kKeep : Action::kDrop;
  }
  return Action::kDrop;
}

// Returns the name of a field for errors. ClassifyRequest, DetectRequest and
// SegmentRequest use the same field numbers and names.
absl::string_view NameOf(uint32_t number) {
  const auto* field =
      v1::ClassifyRequest::descriptor()->FindFieldByNumber(number);
  return field == nullptr ? absl::string_view() : field->name();
}

class Walker {
 public:
  Walker(absl::Span<const absl::string_view> parts, const WireLimits& limits,
         WireRequest* request)
      : copier_(parts, limits.max_rest_bytes, &request->rest),
        cursor_(copier_.cursor()),
        limits_(limits),
        request_(*request) {}

  absl::Status Walk() {
    const int64_t end = cursor_.size();
    while (cursor_.position() < end) {
      uint32_t tag;
      if (!cursor_.ReadTag(end, &tag)) return Malformed();
      field_ = NumberOf(tag);
      const bool is_image =
          field_ == kImages && TypeOf(tag) == WireType::kLengthDelimited;
      const bool is_known = field_ <= 5 && field_ != kImages;
      if (!is_image) {
        if (!(is_known ? copier_.Keep(tag, end, kMaxWireDepth)
                       : cursor_.SkipField(tag, end, kMaxWireDepth))) {
          return Malformed();
        }
        continue;
      }
      if (++request_.images <= limits_.max_images) {
        if (!Enter(Message::kImage, tag, end, kMaxWireDepth)) {
          return Malformed();
        }
        continue;
      }
      if (request_.images == kMaxImagesCounted) return absl::OkStatus();
      if (!cursor_.SkipField(tag, end, kMaxWireDepth)) return Malformed();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Malformed() const {
    return copier_.Error(NameOf(field_), "the pictures");
  }

  // The methods below return false if the message is malformed or too large.

  bool KeepExtent(uint32_t tag, int64_t end) {
    const uint32_t index = request_.extents.size();
    return copier_.Put(tag, IndexBytes(index)) &&
           cursor_.SkipBytes(end, &request_.extents.emplace_back());
  }

  // Handles the fields of a nested message. `depth` is the number of further
  // nesting levels that are allowed.
  bool Enter(Message message, uint32_t tag, int64_t end, int depth) {
    return copier_.KeepMessage(
        tag, end, [&](uint32_t inner, int64_t inner_end) {
          return Handle(message, inner, inner_end, depth - 1);
        });
  }

  bool Handle(Message message, uint32_t tag, int64_t end, int depth) {
    const uint32_t number = NumberOf(tag);
    switch (
        ActionOf(message, number, TypeOf(tag) == WireType::kLengthDelimited)) {
      case Action::kDrop:
        return cursor_.SkipField(tag, end, depth);
      case Action::kKeep:
        return copier_.Keep(tag, end, depth);
      case Action::kExtent:
        return KeepExtent(tag, end);
      case Action::kMessage:
        return Enter(number == 2 ? Message::kPixelBuffer : Message::kTensor,
                     tag, end, depth);
    }
    return false;
  }

  WireCopier copier_;
  WireCursor& cursor_;
  const WireLimits limits_;
  WireRequest& request_;
  // The number of the request's field that Walk() currently reads.
  uint32_t field_ = 0;
};

}  // namespace

absl::Status WalkRequest(absl::Span<const absl::string_view> parts,
                         const WireLimits& limits, WireRequest* request) {
  return Walker(parts, limits, request).Walk();
}

absl::Status ReadRequest(absl::Span<const absl::string_view> parts,
                         int max_images, WireRequest* request,
                         google::protobuf::Message* message) {
  WireLimits limits;
  limits.max_images = max_images;
  absl::Status status = WalkRequest(parts, limits, request);
  if (status.ok() && !message->ParseFromString(request->rest)) {
    status = NotParsed();
    message->Clear();
  }
  return status;
}

std::string IndexBytes(uint32_t index) {
  return std::string(reinterpret_cast<const char*>(&index), sizeof(index));
}

int64_t ExtentIndex(absl::string_view bytes) {
  uint32_t index = 0;
  std::memcpy(&index, bytes.data(), sizeof(index));
  return index;
}

}  // namespace sfmamba::call
