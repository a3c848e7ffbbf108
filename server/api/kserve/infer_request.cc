#include "server/api/kserve/infer_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/api/kserve/infer_parameters.h"
#include "server/api/kserve/published_model.h"
#include "server/api/kserve/tensor_elements.h"
#include "server/call/wire/wire_request.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::kserve {
namespace {

constexpr char kRawField[] = "raw_input_contents[0]";
constexpr char kContentsField[] = "inputs[0].contents";
// The maximum number of bytes of a name in an error message.
constexpr size_t kMaxNameShown = 64;

absl::Span<const int64_t> ShapeOf(const inference::ModelInferRequest& message) {
  const auto& shape = message.inputs(0).shape();
  return absl::Span<const int64_t>(shape.data(), shape.size());
}

// Returns the error for a request in which `field` occurs `got` times.
// `expected` describes the allowed number.
absl::Status NotOne(absl::string_view field, int got,
                    absl::string_view expected) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected ", expected));
}

// Checks that there is exactly one input. Also checks that the elements of the
// input are either raw (in raw_input_contents) or typed (in `contents`).
absl::Status CheckCounts(const InferWire& wire) {
  if (wire.inputs != 1) {
    return NotOne("inputs", wire.inputs, "one, \"image\"");
  }
  if (wire.outputs > kMaxOutputs) {
    return NotOne("outputs", wire.outputs, "each of the model's once");
  }
  if (wire.raw_inputs > 1) {
    return NotOne("raw_input_contents", wire.raw_inputs, "one for each input");
  }
  if (wire.raw_inputs == 1 && wire.contents_count > 0) {
    return server::InvalidField(
        "raw_input_contents",
        "got raw and typed contents, expected one of them");
  }
  if (wire.raw_inputs == 0 && wire.contents_count != 1) {
    return NotOne(kContentsField, wire.contents_count, "one");
  }
  return absl::OkStatus();
}

using call::kMaxWireDepth;
using call::WireType;

// The protobuf field numbers of `inputs`, `outputs` and `raw_input_contents` in
// ModelInferRequest.
constexpr uint32_t kInputs = 5, kOutputs = 6, kRawInputs = 7;
// The field number of `contents` in InferInputTensor. All fields with lower
// numbers normally contain little data, so EnterInput() copies them. It skips
// `contents` and all fields with higher numbers.
constexpr uint32_t kContents = 5;

absl::string_view NameOf(uint32_t number) {
  const auto* field =
      inference::ModelInferRequest::descriptor()->FindFieldByNumber(number);
  return field == nullptr ? absl::string_view() : field->name();
}

class Walker {
 public:
  Walker(absl::Span<const absl::string_view> parts, InferWire* wire)
      : copier_(parts, kMaxInferRestBytes, &wire->rest),
        cursor_(copier_.cursor()),
        wire_(*wire) {}

  absl::Status Walk() {
    const int64_t end = cursor_.size();
    while (cursor_.position() < end) {
      uint32_t tag;
      if (!cursor_.ReadTag(end, &tag)) return Malformed();
      field_ = call::NumberOf(tag);
      if (!Handle(tag, end)) return Malformed();
      if (wire_.inputs == kMaxCounted || wire_.outputs == kMaxCounted ||
          wire_.raw_inputs == kMaxCounted) {
        break;  // FindImages() later refuses a request with such a count.
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Malformed() const {
    return copier_.Error(NameOf(field_), "the tensors' elements");
  }

  // The methods below return false if the message is malformed or too large.

  bool Handle(uint32_t tag, int64_t end) {
    const bool delimited = call::TypeOf(tag) == WireType::kLengthDelimited;
    if (delimited && field_ == kInputs && ++wire_.inputs == 1) {
      return EnterInput(tag, end);
    }
    if (delimited && field_ == kOutputs && ++wire_.outputs <= kMaxOutputs) {
      return copier_.Keep(tag, end, kMaxWireDepth);
    }
    if (delimited && field_ == kRawInputs && ++wire_.raw_inputs == 1) {
      return cursor_.SkipBytes(end, &wire_.raw);
    }
    return field_ < kInputs ? copier_.Keep(tag, end, kMaxWireDepth)
                            : cursor_.SkipField(tag, end, kMaxWireDepth);
  }

  bool EnterInput(uint32_t tag, int64_t outer_end) {
    return copier_.KeepMessage(
        tag, outer_end, [this](uint32_t inner, int64_t end) {
          const uint32_t number = call::NumberOf(inner);
          if (number == kContents &&
              call::TypeOf(inner) == WireType::kLengthDelimited) {
            ++wire_.contents_count;
            return cursor_.SkipBytes(end, &wire_.contents);
          }
          return number < kContents
                     ? copier_.Keep(inner, end, kMaxWireDepth - 1)
                     : cursor_.SkipField(inner, end, kMaxWireDepth - 1);
        });
  }

  call::WireCopier copier_;
  call::WireCursor& cursor_;
  InferWire& wire_;
  // The field number of the request's field that Walk() currently reads.
  uint32_t field_ = 0;
};

// Checks the input. Sets the element type and the number of images.
absl::Status CheckInput(const InferWire& wire,
                        const inference::ModelInferRequest& message,
                        ElementType* type, int* count) {
  absl::Status status;
  // The check for shared memory comes first because an input in shared memory
  // has no contents.
  if (wire.inputs > 0) status = CheckNoRegion(message.inputs(0).parameters());
  if (status.ok()) status = CheckCounts(wire);
  if (!status.ok()) return status;
  const auto& input = message.inputs(0);
  if (input.name() != kInputName) {
    return server::InvalidField(
        "inputs[0].name",
        absl::StrCat("got \"", base::Utf8Prefix(input.name(), kMaxNameShown),
                     "\", expected \"", kInputName, "\""));
  }
  const absl::StatusOr<ElementType> parsed = ParseElementType(input.datatype());
  if (!parsed.ok()) {
    return server::AtField("inputs[0].datatype", parsed.status());
  }
  *type = *parsed;
  const absl::StatusOr<int64_t> images = CountImages(*type, ShapeOf(message));
  if (!images.ok()) return server::AtField("inputs[0].shape", images.status());
  *count = static_cast<int>(
      std::min<int64_t>(*images, std::numeric_limits<int>::max()));
  return absl::OkStatus();
}

// Converts typed numbers to raw bytes and stores them in `images`. The
// conversion is needed because protobuf's encoding of a number may differ from
// the number's raw bytes.
absl::Status CopyTypedNumbers(absl::Span<const absl::string_view> parts,
                              const ElementType& type,
                              absl::Span<const int64_t> shape,
                              const call::WireExtent& contents,
                              InferImages* images) {
  const int64_t image = BytesOfImage(type, shape);
  const int64_t bytes = images->count * image;
  const int64_t elements = bytes / type.bytes;
  // Only UINT8 and FP32 elements can be in `contents`. In the message, a UINT8
  // element is a varint of at least one byte, and an FP32 element has four
  // bytes. The elements in the message are therefore never smaller than the raw
  // elements. If the shape needs more bytes than the message contains, the
  // request is refused before memory is allocated.
  if (bytes > contents.length) {
    return server::InvalidField(
        kContentsField,
        absl::StrCat("got ", contents.length, " bytes, expected ", elements,
                     " elements as the shape has"));
  }
  images->copy.resize(bytes);
  const absl::Status status =
      ReadTypedNumbers(parts, type, elements, contents,
                       reinterpret_cast<uint8_t*>(&images->copy[0]));
  if (!status.ok()) return server::AtField(kContentsField, status);
  for (int i = 0; i < images->count; ++i) {
    images->extents.push_back({i * image, image});
  }
  return absl::OkStatus();
}

// Sets the extent (range of bytes) of each image in `images`.
absl::Status Split(absl::Span<const absl::string_view> parts,
                   const InferWire& wire, const ElementType& type,
                   absl::Span<const int64_t> shape, InferImages* images) {
  const bool is_raw = wire.raw_inputs > 0;
  if (!is_raw && !type.is_bytes()) {
    return CopyTypedNumbers(parts, type, shape, wire.contents, images);
  }
  absl::StatusOr<std::vector<call::WireExtent>> extents =
      !is_raw           ? SplitTypedFiles(parts, images->count, wire.contents)
      : type.is_bytes() ? SplitRawFiles(parts, images->count, wire.raw)
                        : SplitRawNumbers(type, shape, images->count, wire.raw);
  if (!extents.ok()) {
    return server::AtField(is_raw ? kRawField : kContentsField,
                           extents.status());
  }
  images->extents = *std::move(extents);
  return absl::OkStatus();
}

}  // namespace

absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire) {
  return Walker(parts, wire).Walk();
}

InferImages FindImages(absl::Span<const absl::string_view> parts,
                       const InferWire& wire, int max_images,
                       inference::ModelInferRequest* message) {
  InferImages images;
  ElementType type;
  images.status = CheckInput(wire, *message, &type, &images.count);
  if (!images.status.ok() || images.count > max_images) return images;
  images.status = Split(parts, wire, type, ShapeOf(*message), &images);
  if (wire.raw_inputs == 0) message->mutable_inputs(0)->mutable_contents();
  for (size_t i = 0; i < images.extents.size(); ++i) {
    message->add_raw_input_contents(call::IndexBytes(i));
  }
  return images;
}

absl::Status ReadInferRequest(absl::Span<const absl::string_view> parts,
                              int max_images, InferImages* images,
                              inference::ModelInferRequest* message) {
  InferWire wire;
  absl::Status status = WalkInferRequest(parts, &wire);
  if (status.ok() && !message->ParseFromString(wire.rest)) {
    status = call::NotParsed();
  }
  if (status.ok()) {
    *images = FindImages(parts, wire, max_images, message);
  } else {
    message->Clear();
  }
  return status;
}

bool IsRaw(const inference::ModelInferRequest& message) {
  return !message.inputs(0).has_contents();
}

bool HasFiles(const inference::ModelInferRequest& message) {
  return ParseElementType(message.inputs(0).datatype())->is_bytes();
}

image::ImageSource ImageOf(const inference::ModelInferRequest& message, int i) {
  image::ImageSource source;
  const absl::string_view index = message.raw_input_contents(i);
  if (HasFiles(message)) {
    source.source = image::EncodedImage{index};
    return source;
  }
  auto& tensor = source.source.emplace<image::InputTensor>();
  tensor.type = ParseElementType(message.inputs(0).datatype())->type;
  tensor.shape = ShapeOf(message).subspan(1);
  tensor.data = index;
  return source;
}

}  // namespace sfmamba::kserve
