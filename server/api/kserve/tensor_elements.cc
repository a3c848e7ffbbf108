#include "server/api/kserve/tensor_elements.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "inference/grpc_service.pb.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

using call::WireCursor;
using call::WireExtent;
using call::WireType;

constexpr char kTypes[] = "FP32, FP16, BF16, UINT8 or BYTES";
// The maximum number of bytes of a name in an error message.
constexpr size_t kMaxShown = 32;
constexpr int kMaxDimensionsShown = 8;
// In raw_input_contents, the length of a file precedes the file. This is the
// size of the length in bytes.
constexpr int kLengthBytes = 4;
// The field numbers of `uint_contents`, `fp32_contents` and `bytes_contents` in
// InferTensorContents.
constexpr uint32_t kUint = 4, kFloat = 6, kBytes = 8;

absl::Status Error(absl::string_view message) {
  return server::InvalidField("", message);
}

absl::Status Truncated() {
  return server::MalformedMessage("a tensor's contents are malformed");
}

std::string Shown(absl::Span<const int64_t> shape) {
  const auto end =
      shape.begin() + std::min<size_t>(shape.size(), kMaxDimensionsShown);
  return absl::StrCat("[", absl::StrJoin(shape.begin(), end, ", "),
                      end == shape.end() ? "]" : ", ...]");
}

// Returns the name of a field of InferTensorContents, or "" for any other
// field.
absl::string_view ContentsName(uint32_t number) {
  const auto* field =
      inference::InferTensorContents::descriptor()->FindFieldByNumber(number);
  return field == nullptr ? absl::string_view() : field->name();
}

// Reads an InferTensorContents that may contain only the field `wanted`. Calls
// read(cursor, tag, end) after each tag of that field. `read` must read the
// value of the field.
template <typename Read>
absl::Status ReadContents(absl::Span<const absl::string_view> parts,
                          const WireExtent& contents, uint32_t wanted,
                          const Read& read) {
  WireCursor cursor(parts);
  const int64_t end = contents.position + contents.length;
  cursor.Skip(contents.position, end);
  while (cursor.position() < end) {
    uint32_t tag;
    if (!cursor.ReadTag(end, &tag)) return Truncated();
    const uint32_t number = call::NumberOf(tag);
    if (number == wanted) {
      const absl::Status status = read(cursor, tag, end);
      if (!status.ok()) return status;
      continue;
    }
    if (!ContentsName(number).empty()) {
      return Error(absl::StrCat("got ", ContentsName(number), ", expected ",
                                ContentsName(wanted)));
    }
    if (!cursor.SkipField(tag, end, call::kMaxWireDepth)) return Truncated();
  }
  return absl::OkStatus();
}

absl::Status WrongCount(int64_t expected) {
  return Error(absl::StrCat("got other than ", expected,
                            " elements, expected as many as the shape has"));
}

// Reads numbers in protobuf's packed or unpacked encoding. The buffer `to` must
// have room for `count` elements.
class NumberReader {
 public:
  NumberReader(const ElementType& type, int64_t count, uint8_t* to)
      : type_(type), left_(count), to_(to) {}

  absl::Status operator()(WireCursor& cursor, uint32_t tag, int64_t end) {
    const WireType single =
        type_.bytes == 1 ? WireType::kVarint : WireType::kFixed32;
    if (call::TypeOf(tag) == single) return One(cursor, end);
    int64_t length;
    if (call::TypeOf(tag) != WireType::kLengthDelimited ||
        !cursor.ReadLength(end, &length)) {
      return Truncated();
    }
    const int64_t packed_end = cursor.position() + length;
    if (type_.bytes == 1) {
      while (cursor.position() < packed_end) {
        const absl::Status status = One(cursor, packed_end);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    }
    if (length % type_.bytes != 0) return Truncated();
    return Many(cursor, length / type_.bytes, packed_end);
  }

  int64_t left() const { return left_; }

 private:
  absl::Status One(WireCursor& cursor, int64_t end) {
    if (type_.bytes != 1) return Many(cursor, 1, end);
    uint64_t value;
    if (!cursor.ReadVarint(end, &value)) return Truncated();
    // A varint may have up to 64 bits. Like protobuf, ignores all bits above
    // the low 32 bits, because the field has the type uint32.
    if (static_cast<uint32_t>(value) > 255) {
      return Error(absl::StrCat("got ", static_cast<uint32_t>(value),
                                ", expected 0 to 255 of UINT8"));
    }
    if (left_ == 0) return Error("got more elements than the shape has");
    *to_++ = static_cast<uint8_t>(value);
    --left_;
    return absl::OkStatus();
  }

  absl::Status Many(WireCursor& cursor, int64_t count, int64_t end) {
    if (count > left_) return Error("got more elements than the shape has");
    if (!cursor.CopyTo(count * type_.bytes, end, to_)) return Truncated();
    to_ += count * type_.bytes;
    left_ -= count;
    return absl::OkStatus();
  }

  const ElementType type_;
  int64_t left_;
  uint8_t* to_;
};

}  // namespace

absl::StatusOr<ElementType> ParseElementType(absl::string_view datatype) {
  using Type = image::InputTensor::Type;
  static constexpr ElementType kKnown[] = {{"FP32", 4, Type::kFloat32},
                                           {"FP16", 2, Type::kFloat16},
                                           {"BF16", 2, Type::kBfloat16},
                                           {"UINT8", 1, Type::kUint8},
                                           {"BYTES", 0, Type::kFloat32}};
  for (const ElementType& type : kKnown) {
    if (type.name == datatype) return type;
  }
  return Error(absl::StrCat("got \"", base::Utf8Prefix(datatype, kMaxShown),
                            "\", expected ", kTypes));
}

absl::StatusOr<int64_t> CountImages(const ElementType& type,
                                    absl::Span<const int64_t> shape) {
  const size_t rank = shape.size();
  const bool fits = type.is_bytes() ? rank == 1 || (rank == 2 && shape[1] == 1)
                                    : rank == 4 && shape[1] == 3 &&
                                          shape[2] >= 1 && shape[3] >= 1;
  if (!fits || shape[0] < 1) {
    return Error(absl::StrCat(
        "got ", Shown(shape), ", expected ",
        type.is_bytes() ? "[N] or [N, 1]" : "[N, 3, height, width]",
        " of 1 or more images"));
  }
  // A client may send any shape, so the product of its dimensions may overflow
  // int64_t.
  int64_t bytes = std::max(type.bytes, 1);
  for (const int64_t side : shape) {
    if (__builtin_mul_overflow(bytes, side, &bytes)) {
      return Error(absl::StrCat("got ", Shown(shape),
                                ", expected a number of elements that can be "
                                "counted"));
    }
  }
  return shape[0];
}

int64_t BytesOfImage(const ElementType& type, absl::Span<const int64_t> shape) {
  return type.bytes * shape[1] * shape[2] * shape[3];
}

absl::StatusOr<std::vector<WireExtent>> SplitRawNumbers(
    const ElementType& type, absl::Span<const int64_t> shape, int images,
    const WireExtent& raw) {
  const int64_t bytes = BytesOfImage(type, shape);
  if (raw.length != images * bytes) {
    return Error(absl::StrCat("got ", raw.length, " bytes, expected ",
                              images * bytes, " of the shape ", Shown(shape)));
  }
  std::vector<WireExtent> extents;
  for (int i = 0; i < images; ++i) {
    extents.push_back({raw.position + i * bytes, bytes});
  }
  return extents;
}

absl::StatusOr<std::vector<WireExtent>> SplitRawFiles(
    absl::Span<const absl::string_view> parts, int images,
    const WireExtent& raw) {
  WireCursor cursor(parts);
  const int64_t end = raw.position + raw.length;
  cursor.Skip(raw.position, end);
  std::vector<WireExtent> extents;
  for (int i = 0; i < images; ++i) {
    uint8_t bytes[kLengthBytes];
    if (!cursor.CopyTo(kLengthBytes, end, bytes)) {
      return Error(
          absl::StrCat("got ", i, " whole elements, expected ", images));
    }
    int64_t length = 0;
    for (int b = kLengthBytes - 1; b >= 0; --b) length = length << 8 | bytes[b];
    const int64_t position = cursor.position();
    if (!cursor.Skip(length, end)) {
      return Error(absl::StrCat("got ", end - position, " bytes in element ", i,
                                ", expected ", length, " as it says"));
    }
    extents.push_back({position, length});
  }
  if (cursor.position() != end) {
    return Error(absl::StrCat("got ", end - cursor.position(), " bytes after ",
                              images, " elements, expected none"));
  }
  return extents;
}

absl::StatusOr<std::vector<WireExtent>> SplitTypedFiles(
    absl::Span<const absl::string_view> parts, int images,
    const WireExtent& contents) {
  std::vector<WireExtent> extents;
  const absl::Status status = ReadContents(
      parts, contents, kBytes,
      [&](WireCursor& cursor, uint32_t tag, int64_t end) -> absl::Status {
        int64_t length;
        if (call::TypeOf(tag) != WireType::kLengthDelimited ||
            !cursor.ReadLength(end, &length)) {
          return Truncated();
        }
        if (static_cast<int>(extents.size()) == images) {
          return WrongCount(images);
        }
        extents.push_back({cursor.position(), length});
        return cursor.Skip(length, end) ? absl::OkStatus() : Truncated();
      });
  if (!status.ok()) return status;
  if (static_cast<int>(extents.size()) != images) return WrongCount(images);
  return extents;
}

absl::Status ReadTypedNumbers(absl::Span<const absl::string_view> parts,
                              const ElementType& type, int64_t count,
                              const WireExtent& contents, uint8_t* to) {
  if (type.bytes == 2) {
    return Error(absl::StrCat("got contents of ", type.name,
                              ", which exist in raw_input_contents only"));
  }
  NumberReader reader(type, count, to);
  const absl::Status status =
      ReadContents(parts, contents, type.bytes == 1 ? kUint : kFloat,
                   [&reader](WireCursor& cursor, uint32_t tag, int64_t end) {
                     return reader(cursor, tag, end);
                   });
  if (!status.ok()) return status;
  return reader.left() == 0 ? absl::OkStatus() : WrongCount(count);
}

}  // namespace sfmamba::kserve
