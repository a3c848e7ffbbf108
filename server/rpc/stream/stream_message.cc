#include "server/rpc/stream/stream_message.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "grpcpp/support/slice.h"
#include "server/errors/reasons.h"
#include "server/rpc/wire/received_request.h"
#include "server/rpc/wire/wire_cursor.h"

namespace sfmamba::rpc {
namespace {

using Proto = v1::StreamPredictRequest;

constexpr int kMaxDepth = 100;      // Most nested groups, protobuf's own limit.
constexpr int64_t kMaxText = 1024;  // Most bytes of a small field.

absl::Status CopyText(WireCursor* cursor, const char* name, std::string* text) {
  int64_t length = 0;
  if (!cursor->ReadLength(cursor->size(), &length)) return NotParsed();
  if (length > kMaxText) {
    return server::MalformedMessage(absl::StrCat(
        name, ": got ", length, " bytes, expected at most ", kMaxText));
  }
  text->clear();
  return cursor->Copy(length, cursor->size(), text) ? absl::OkStatus()
                                                    : NotParsed();
}

// Reads the field that `tag` begins.
absl::Status ReadField(WireCursor* cursor, uint32_t tag, StreamMessage* message,
                       WireExtent* request) {
  const uint32_t number = NumberOf(tag);
  if (TypeOf(tag) != WireType::kLengthDelimited ||
      number > Proto::kSegmentFieldNumber) {
    return cursor->SkipField(tag, cursor->size(), kMaxDepth) ? absl::OkStatus()
                                                             : NotParsed();
  }
  if (number == Proto::kCorrelationIdFieldNumber) {
    const absl::Status status =
        CopyText(cursor, "correlation_id", &message->correlation_id);
    if (!status.ok()) return status;
    return base::Utf8Length(message->correlation_id) >= 0 ? absl::OkStatus()
                                                          : NotParsed();
  }
  if (message->kind != Proto::REQUEST_NOT_SET) {
    return server::MalformedMessage(
        "got more than one request or config, expected one");
  }
  message->kind = static_cast<Proto::RequestCase>(number);
  if (number == Proto::kConfigFieldNumber) {
    std::string text;
    const absl::Status status = CopyText(cursor, "config", &text);
    if (!status.ok()) return status;
    return message->config.ParseFromString(text) ? absl::OkStatus()
                                                 : NotParsed();
  }
  return cursor->SkipBytes(cursor->size(), request) ? absl::OkStatus()
                                                    : NotParsed();
}

// A buffer of what lies there, in the same memory.
grpc::ByteBuffer Share(const std::vector<grpc::Slice>& slices,
                       const WireExtent& extent) {
  std::vector<grpc::Slice> shared;
  int64_t start = 0;
  for (const grpc::Slice& slice : slices) {
    const int64_t size = slice.size();
    const int64_t from = std::max<int64_t>(extent.position - start, 0);
    const int64_t to = std::min(extent.position + extent.length - start, size);
    if (from < to) shared.push_back(slice.sub(from, to));
    start += size;
  }
  return grpc::ByteBuffer(shared.data(), shared.size());
}

}  // namespace

absl::Status OpenStreamMessage(grpc::ByteBuffer* received,
                               StreamMessage* message) {
  *message = {};
  const MessageSlices taken(received);
  if (!taken.ok) return NotParsed();
  WireCursor cursor(taken.parts);
  WireExtent request = {};
  while (cursor.position() < cursor.size()) {
    uint32_t tag = 0;
    if (!cursor.ReadTag(cursor.size(), &tag)) return NotParsed();
    const absl::Status status = ReadField(&cursor, tag, message, &request);
    if (!status.ok()) return status;
  }
  message->request = Share(taken.slices, request);
  return absl::OkStatus();
}

}  // namespace sfmamba::rpc
