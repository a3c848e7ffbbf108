#include "server/rpc/wire/wire_cursor.h"

#include <algorithm>
#include <cstring>

namespace sfmamba::rpc {
namespace {

constexpr int kMaxTagBytes = 5;
constexpr int kMaxVarintBytes = 10;

}  // namespace

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

}  // namespace sfmamba::rpc
