#ifndef SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
#define SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::call {

// INVALID_ARGUMENT, MALFORMED_MESSAGE, of a message that protobuf has refused.
absl::Status NotParsed();

// Where bytes lie in a message.
struct WireExtent {
  int64_t position;
  int64_t length;
};

// Reads protobuf's wire format from a message that lies in several parts, as a
// transport received it, without joining them. It accepts the encodings that
// protobuf's own parser accepts: a tag or a length in at most five bytes, a
// number in at most ten, with zeros in front or not.
//
// Every method returns false, and then the cursor is of no more use, if the
// bytes are malformed or would end after `end`, a position in the message.
// Thread-compatible; the parts must outlive it.
class WireCursor {
 public:
  explicit WireCursor(absl::Span<const absl::string_view> parts);

  // Bytes read so far.
  int64_t position() const { return part_start_ + (at_ - part_begin_); }
  // Bytes of the whole message.
  int64_t size() const { return size_; }

  // Reads a tag; its field number is not 0.
  bool ReadTag(int64_t end, uint32_t* tag);
  // Reads the length of what follows, which ends at `end` or before.
  bool ReadLength(int64_t end, int64_t* length);
  bool ReadVarint(int64_t end, uint64_t* value);
  bool Skip(int64_t bytes, int64_t end);
  // Skips a length and as many bytes, which lie at `extent`.
  bool SkipBytes(int64_t end, WireExtent* extent);
  // Skips and appends to `copy`.
  bool Copy(int64_t bytes, int64_t end, std::string* copy);
  bool CopyTo(int64_t bytes, int64_t end, uint8_t* to);
  // Skips what follows `tag`, a group with all that is in it. Groups may be
  // nested `depth` deep.
  bool SkipField(uint32_t tag, int64_t end, int depth);

 private:
  // Reads a varint of at most `max_bytes`, the last bits of which may be lost.
  bool ReadVarint(int64_t end, int max_bytes, uint64_t* value);
  // Makes the next part with bytes the one that is read. There is one.
  void NextPart();

  absl::Span<const absl::string_view> parts_;  // After the one that is read.
  int64_t size_ = 0;
  int64_t part_start_ = 0;  // Its position in the message.
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

// Walks over a message and copies the small part of it that protobuf is to
// parse, up to a limit. Thread-compatible; `parts` and `rest` outlive it.
class WireCopier {
 public:
  WireCopier(absl::Span<const absl::string_view> parts, int64_t max_rest_bytes,
             std::string* rest)
      : cursor_(parts), max_rest_bytes_(max_rest_bytes), rest_(*rest) {}

  WireCursor& cursor() { return cursor_; }
  // Why a method returned false, INVALID_ARGUMENT: INVALID_FIELD with field
  // `field` if the rest beside `payload`, such as "the pictures", would be too
  // large, or else MALFORMED_MESSAGE.
  absl::Status Error(absl::string_view field, absl::string_view payload) const;

  // Copies the field after `tag`. Groups, nested `depth` deep, are dropped, as
  // nothing known is one.
  bool Keep(uint32_t tag, int64_t end, int depth);

  // Writes a length-delimited field of these bytes.
  bool Put(uint32_t tag, absl::string_view bytes);

  // Copies the message after `tag`: handle(tag, end) reads each of its fields,
  // and what it copies belongs to the message.
  bool KeepMessage(uint32_t tag, int64_t outer_end,
                   absl::FunctionRef<bool(uint32_t tag, int64_t end)> handle);

 private:
  bool KeepBytes(uint32_t tag, int64_t bytes, int64_t end);
  // Whether `bytes` more may join the rest, with a header of their own.
  bool HasRoom(int64_t bytes);

  WireCursor cursor_;
  const int64_t max_rest_bytes_;
  std::string& rest_;
  bool too_large_ = false;
};

}  // namespace sfmamba::call

#endif  // SFMAMBA_SERVER_CALL_WIRE_WIRE_CURSOR_H_
