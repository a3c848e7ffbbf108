#include "server/rpc/wire/wire_copier.h"

namespace sfmamba::rpc {
namespace {

// A tag and a number, or a tag and a length, at their longest.
constexpr int kMaxHeaderBytes = 15;
// A length in four bytes, to be set once it is known.
constexpr int kLengthBytes = 4;

void AppendVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

}  // namespace

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

bool WireCopier::BeginMessage(uint32_t tag, int64_t end, int64_t* inner_end,
                              size_t* start) {
  int64_t length;
  if (!cursor_.ReadLength(end, &length) || !HasRoom(0)) return false;
  *inner_end = cursor_.position() + length;
  AppendVarint(tag, &rest_);
  rest_.append(kLengthBytes, '\0');
  *start = rest_.size();
  return true;
}

void WireCopier::EndMessage(size_t start) {
  const size_t length = rest_.size() - start;
  char* to = &rest_[start - kLengthBytes];
  for (int i = 0; i < kLengthBytes; ++i) {
    to[i] = static_cast<char>((length >> (7 * i) & 0x7f) |
                              (i < kLengthBytes - 1 ? 0x80 : 0));
  }
}

}  // namespace sfmamba::rpc
