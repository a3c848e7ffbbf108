#ifndef SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
#define SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::call {

// Returns the error for a message that protobuf cannot parse. The error is
// INVALID_ARGUMENT with reason MALFORMED_MESSAGE.
absl::Status NotParsed();

// A range of bytes in a message, such as the bytes of a picture. `position`
// counts from the start of the message.
struct WireExtent {
  int64_t position;
  int64_t length;
};

// Reads the protobuf wire format from a message that is split into several
// parts. Does not join the parts. Accepts the same encodings as protobuf's
// parser. A tag or a length has at most five bytes, and the value of a varint
// field has at most ten. An encoding may be longer than necessary.
//
// The parameter `end` is a position in the message. Every method with this
// parameter returns false if the bytes are malformed or extend past `end`. The
// cursor must not be used any more after a method has returned false.
// Thread-compatible. The parts must outlive the cursor.
class WireCursor {
 public:
  explicit WireCursor(absl::Span<const absl::string_view> parts);

  // Returns the number of bytes read so far.
  int64_t position() const { return part_start_ + (at_ - part_begin_); }
  // Returns the size of the message in bytes.
  int64_t size() const { return size_; }

  // Reads a tag. Returns false if the field number is 0.
  bool ReadTag(int64_t end, uint32_t* tag);
  // Reads a length. Returns false if `length` bytes would extend past `end`.
  bool ReadLength(int64_t end, int64_t* length);
  bool ReadVarint(int64_t end, uint64_t* value);
  bool Skip(int64_t bytes, int64_t end);
  // Skips a length-delimited value. Sets `extent` to the range of the value's
  // bytes.
  bool SkipBytes(int64_t end, WireExtent* extent);
  // Reads `bytes` bytes and appends them to `copy`.
  bool Copy(int64_t bytes, int64_t end, std::string* copy);
  bool CopyTo(int64_t bytes, int64_t end, uint8_t* to);
  // Skips the value of the field with tag `tag`. If the field is a group (an
  // old form of nested message), skips all fields of the group. Groups may be
  // nested at most `depth` levels deep.
  bool SkipField(uint32_t tag, int64_t end, int depth);

 private:
  // Reads a varint of at most `max_bytes` bytes. Drops the bits above bit 63.
  bool ReadVarint(int64_t end, int max_bytes, uint64_t* value);
  // Moves to the next nonempty part of the message. There must be such a part.
  void NextPart();

  // The parts of the message that come after the current part.
  absl::Span<const absl::string_view> parts_;
  int64_t size_ = 0;
  int64_t part_start_ = 0;  // The position of the current part in the message.
  const char* part_begin_ = nullptr;
  const char* part_end_ = nullptr;
  const char* at_ = nullptr;
};

// Protobuf's default limit for nested messages and groups.
constexpr int kMaxWireDepth = 100;

enum class WireType {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

inline WireType TypeOf(uint32_t tag) { return static_cast<WireType>(tag & 7); }
inline uint32_t NumberOf(uint32_t tag) { return tag >> 3; }

// Appends `value` as a varint.
inline void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

// Copies selected fields of a message to the string `rest`, which protobuf
// parses afterwards. Limits the size of `rest`. Thread-compatible. `parts` and
// `rest` must outlive the copier.
class WireCopier {
 public:
  WireCopier(absl::Span<const absl::string_view> parts, int64_t max_rest_bytes,
             std::string* rest)
      : cursor_(parts), max_rest_bytes_(max_rest_bytes), rest_(*rest) {}

  WireCursor& cursor() { return cursor_; }
  // Returns the error after one of the methods below has returned false. The
  // error is INVALID_ARGUMENT. The reason is INVALID_FIELD with field `field`
  // if `rest` would be too large. Otherwise the reason is MALFORMED_MESSAGE.
  // `payload` names the bytes that do not count towards the limit, such as "the
  // pictures".
  absl::Status Error(absl::string_view field, absl::string_view payload) const;

  // Copies the field with tag `tag` to `rest`. Skips the field if it is a
  // group, because no known field is a group. Groups may be nested at most
  // `depth` levels deep.
  bool Keep(uint32_t tag, int64_t end, int depth);

  // Appends a length-delimited field with the given bytes to `rest`.
  bool Put(uint32_t tag, absl::string_view bytes);

  // Copies the nested message with tag `tag`. Calls handle(field_tag, end) for
  // each field of the nested message. `handle` must read the field and either
  // copy or skip it. `end` is the end of the nested message, and `outer_end` is
  // the end of the message that contains it.
  bool KeepMessage(
      uint32_t tag, int64_t outer_end,
      absl::FunctionRef<bool(uint32_t field_tag, int64_t end)> handle);

 private:
  bool KeepBytes(uint32_t tag, int64_t bytes, int64_t end);
  // Returns true if a field of `bytes` bytes fits into the remaining room of
  // rest_.
  bool HasRoom(int64_t bytes);

  WireCursor cursor_;
  const int64_t max_rest_bytes_;
  std::string& rest_;
  bool too_large_ = false;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
