#ifndef SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
#define SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::call {

// Returns INVALID_ARGUMENT, MALFORMED_MESSAGE, for a message that protobuf
// refuses.
absl::Status NotParsed();

// Where bytes lie in a message.
struct WireExtent {
  int64_t position;
  int64_t length;
};

// Reads protobuf's wire format from a message that lies in several parts, as a
// transport received it, without joining them. It accepts the encodings that
// protobuf's own parser accepts: a tag or a length in at most five bytes and a
// number in at most ten, with or without leading zeros.
//
// Every method returns false if the bytes are malformed or would end after
// `end`, a position in the message. The cursor is not used any more then.
// Thread-compatible. The parts outlive it.
class WireCursor {
 public:
  explicit WireCursor(absl::Span<const absl::string_view> parts);

  // Returns how many bytes were read.
  int64_t position() const { return part_start_ + (at_ - part_begin_); }
  // Returns how many bytes the message has.
  int64_t size() const { return size_; }

  // Reads a tag; its field number is not 0.
  bool ReadTag(int64_t end, uint32_t* tag);
  // Reads the length of the bytes that follow, which end at `end` or before.
  bool ReadLength(int64_t end, int64_t* length);
  bool ReadVarint(int64_t end, uint64_t* value);
  bool Skip(int64_t bytes, int64_t end);
  // Skips a length and as many bytes. Sets `extent` to where the bytes lie.
  bool SkipBytes(int64_t end, WireExtent* extent);
  // Skips bytes and appends them to `copy`.
  bool Copy(int64_t bytes, int64_t end, std::string* copy);
  bool CopyTo(int64_t bytes, int64_t end, uint8_t* to);
  // Skips the field that `tag` begins, a group with all of its fields. Groups
  // may be nested `depth` deep.
  bool SkipField(uint32_t tag, int64_t end, int depth);

 private:
  // Reads a varint of at most `max_bytes`. Bits beyond the 64th are lost.
  bool ReadVarint(int64_t end, int max_bytes, uint64_t* value);
  // Goes to the next part that has bytes. There is one.
  void NextPart();

  absl::Span<const absl::string_view> parts_;  // After the current one.
  int64_t size_ = 0;
  int64_t part_start_ = 0;  // The current part's position in the message.
  const char* part_begin_ = nullptr;
  const char* part_end_ = nullptr;
  const char* at_ = nullptr;
};

// Protobuf's own limit of messages and groups inside one another.
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

// Appends a varint of the wire format.
inline void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

// Walks over a message and copies the small part of it that protobuf parses, up
// to a limit. Thread-compatible. `parts` and `rest` outlive it.
class WireCopier {
 public:
  WireCopier(absl::Span<const absl::string_view> parts, int64_t max_rest_bytes,
             std::string* rest)
      : cursor_(parts), max_rest_bytes_(max_rest_bytes), rest_(*rest) {}

  WireCursor& cursor() { return cursor_; }
  // Returns why a method returned false, INVALID_ARGUMENT: INVALID_FIELD with
  // field `field` if the message without `payload`, such as "the pictures", is
  // too large, else MALFORMED_MESSAGE.
  absl::Status Error(absl::string_view field, absl::string_view payload) const;

  // Copies the field after `tag`. Groups, nested `depth` deep, are dropped,
  // because no known field is a group.
  bool Keep(uint32_t tag, int64_t end, int depth);

  // Writes a length-delimited field with these bytes.
  bool Put(uint32_t tag, absl::string_view bytes);

  // Copies the message after `tag`. Calls handle(tag, end) for each field,
  // which reads the field and copies it into the message or skips it.
  bool KeepMessage(uint32_t tag, int64_t outer_end,
                   absl::FunctionRef<bool(uint32_t tag, int64_t end)> handle);

 private:
  bool KeepBytes(uint32_t tag, int64_t bytes, int64_t end);
  // Returns whether the rest has room for a field of `bytes`.
  bool HasRoom(int64_t bytes);

  WireCursor cursor_;
  const int64_t max_rest_bytes_;
  std::string& rest_;
  bool too_large_ = false;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
