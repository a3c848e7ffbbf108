#include "server/call/wire/wire_cursor.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::call {
namespace {

// The maximum number of bytes of a tag, and also of a length.
constexpr int kMaxTagBytes = 5;
constexpr int kMaxVarintBytes = 10;

// HasRoom() counts this many bytes for each field, in addition to its argument
// `bytes`. A varint field needs the most, namely 5 bytes for the tag and 10
// bytes for the value. A length-delimited field needs less, namely 5 bytes for
// the tag and 5 bytes for the length.
constexpr int kMaxHeaderBytes = 15;
// The number of bytes in which the copier writes the length of a nested
// message. The copier reserves these bytes before it copies the nested message.
// It writes the length afterwards, because the length is not known earlier.
constexpr int kLengthBytes = 4;

}  // namespace

absl::Status NotParsed() {
  return server::MalformedMessage(
      "a parameter is malformed or a text is not UTF-8");
}

WireCursor::WireCursor(absl::Span<const absl::string_view> parts)
    : parts_(parts) {
  for (absl::string_view part : parts) size_ += part.size();
}

void WireCursor::NextPart() {
  while (at_ == part_end_) {
    part_start_ += part_end_ - part_begin_;
    part_begin_ = at_ = parts_.front().data();
    part_end_ = part_begin_ + parts_.front().size();
    parts_.remove_prefix(1);
  }
}

bool WireCursor::ReadVarint(int64_t end, int max_bytes, uint64_t* value) {
  *value = 0;
  const int64_t left = std::min<int64_t>(end - position(), max_bytes);
  for (int i = 0; i < left; ++i) {
    if (at_ == part_end_) NextPart();
    const uint64_t byte = static_cast<uint8_t>(*at_++);
    *value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireCursor::ReadTag(int64_t end, uint32_t* tag) {
  uint64_t value;
  if (!ReadVarint(end, kMaxTagBytes, &value)) return false;
  *tag = static_cast<uint32_t>(value);
  return NumberOf(*tag) != 0;
}

bool WireCursor::ReadLength(int64_t end, int64_t* length) {
  uint64_t value;
  if (!ReadVarint(end, kMaxTagBytes, &value)) return false;
  *length = static_cast<int64_t>(value);
  return *length <= end - position();
}

bool WireCursor::ReadVarint(int64_t end, uint64_t* value) {
  return ReadVarint(end, kMaxVarintBytes, value);
}

bool WireCursor::Skip(int64_t bytes, int64_t end) {
  if (bytes > end - position()) return false;
  while (bytes > 0) {
    if (at_ == part_end_) NextPart();
    const int64_t step = std::min<int64_t>(bytes, part_end_ - at_);
    at_ += step;
    bytes -= step;
  }
  return true;
}

bool WireCursor::SkipBytes(int64_t end, WireExtent* extent) {
  if (!ReadLength(end, &extent->length)) return false;
  extent->position = position();
  return Skip(extent->length, end);
}

bool WireCursor::Copy(int64_t bytes, int64_t end, std::string* copy) {
  if (bytes > end - position()) return false;
  const size_t start = copy->size();
  copy->resize(start + bytes);
  return CopyTo(bytes, end, reinterpret_cast<uint8_t*>(&(*copy)[0]) + start);
}

bool WireCursor::CopyTo(int64_t bytes, int64_t end, uint8_t* to) {
  if (bytes > end - position()) return false;
  while (bytes > 0) {
    if (at_ == part_end_) NextPart();
    const int64_t step = std::min<int64_t>(bytes, part_end_ - at_);
    std::memcpy(to, at_, step);
    at_ += step;
    to += step;
    bytes -= step;
  }
  return true;
}

bool WireCursor::SkipField(uint32_t tag, int64_t end, int depth) {
  switch (TypeOf(tag)) {
    case WireType::kVarint: {
      uint64_t value;
      return ReadVarint(end, &value);
    }
    case WireType::kFixed64:
      return Skip(8, end);
    case WireType::kLengthDelimited: {
      int64_t length;
      return ReadLength(end, &length) && Skip(length, end);
    }
    case WireType::kStartGroup: {
      if (depth == 0) return false;
      uint32_t inner;
      while (ReadTag(end, &inner)) {
        if (TypeOf(inner) == WireType::kEndGroup) {
          return NumberOf(inner) == NumberOf(tag);
        }
        if (!SkipField(inner, end, depth - 1)) return false;
      }
      return false;
    }
    case WireType::kFixed32:
      return Skip(4, end);
    default:
      return false;
  }
}

absl::Status WireCopier::Error(absl::string_view field,
                               absl::string_view payload) const {
  if (too_large_) {
    return server::InvalidField(
        field, absl::StrCat("got more than ", max_rest_bytes_, " bytes beside ",
                            payload, ", expected less"));
  }
  return server::MalformedMessage(absl::StrCat("malformed within its first ",
                                               cursor_.position(), " bytes of ",
                                               cursor_.size()));
}

bool WireCopier::HasRoom(int64_t bytes) {
  const int64_t used = rest_.size();
  too_large_ = used + bytes + kMaxHeaderBytes > max_rest_bytes_;
  return !too_large_;
}

bool WireCopier::Keep(uint32_t tag, int64_t end, int depth) {
  switch (TypeOf(tag)) {
    case WireType::kVarint: {
      uint64_t value;
      if (!cursor_.ReadVarint(end, &value) || !HasRoom(0)) return false;
      AppendVarint(tag, &rest_);
      AppendVarint(value, &rest_);
      return true;
    }
    case WireType::kFixed64:
      return KeepBytes(tag, 8, end);
    case WireType::kFixed32:
      return KeepBytes(tag, 4, end);
    case WireType::kLengthDelimited: {
      int64_t length;
      if (!cursor_.ReadLength(end, &length) || !HasRoom(length)) return false;
      AppendVarint(tag, &rest_);
      AppendVarint(length, &rest_);
      return cursor_.Copy(length, end, &rest_);
    }
    default:
      return cursor_.SkipField(tag, end, depth);
  }
}

bool WireCopier::KeepBytes(uint32_t tag, int64_t bytes, int64_t end) {
  if (!HasRoom(bytes)) return false;
  AppendVarint(tag, &rest_);
  return cursor_.Copy(bytes, end, &rest_);
}

bool WireCopier::Put(uint32_t tag, absl::string_view bytes) {
  if (!HasRoom(bytes.size())) return false;
  AppendVarint(tag, &rest_);
  AppendVarint(bytes.size(), &rest_);
  rest_.append(bytes.data(), bytes.size());
  return true;
}

bool WireCopier::KeepMessage(
    uint32_t tag, int64_t outer_end,
    absl::FunctionRef<bool(uint32_t tag, int64_t end)> handle) {
  int64_t length;
  if (!cursor_.ReadLength(outer_end, &length) || !HasRoom(0)) return false;
  const int64_t end = cursor_.position() + length;
  AppendVarint(tag, &rest_);
  rest_.append(kLengthBytes, '\0');
  const size_t start = rest_.size();
  while (cursor_.position() < end) {
    uint32_t inner;
    if (!cursor_.ReadTag(end, &inner) || !handle(inner, end)) return false;
  }
  const size_t copied = rest_.size() - start;
  char* to = &rest_[start - kLengthBytes];
  for (int i = 0; i < kLengthBytes; ++i) {
    to[i] = static_cast<char>((copied >> (7 * i) & 0x7f) |
                              (i < kLengthBytes - 1 ? 0x80 : 0));
  }
  return true;
}

}  // namespace sfmamba::call
