#ifndef SFMAMBA_SERVER_RPC_WIRE_WIRE_CURSOR_H_
#define SFMAMBA_SERVER_RPC_WIRE_WIRE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::rpc {

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

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_WIRE_WIRE_CURSOR_H_
