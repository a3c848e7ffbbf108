#include "server/kserve/received_inference.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/kserve/infer_parameters.h"
#include "server/kserve/published_model.h"

namespace sfmamba::kserve {
namespace {

constexpr char kRawField[] = "raw_input_contents[0]";
constexpr char kContentsField[] = "inputs[0].contents";
constexpr size_t kMaxNameShown = 64;  // Bytes.

// INVALID_ARGUMENT: `field` occurs `got` times instead of `expected`.
absl::Status NotOne(absl::string_view field, int got,
                    absl::string_view expected) {
  return server::InvalidField(
      field, absl::StrCat("got ", got, ", expected ", expected));
}

// Checks that there is one input, with elements in one place.
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

// Fields of ModelInferRequest.
constexpr uint32_t kInputs = 5, kOutputs = 6, kRawInputs = 7;
// Field of InferInputTensor. The fields with smaller numbers are small.
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
        break;  // The request will be refused, whatever follows.
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
  uint32_t field_ = 0;  // The request's field that is being read.
};

}  // namespace

ReceivedInference::ReceivedInference(grpc::ByteBuffer* message, int max_images)
    : bytes_(message->Length()) {
  const rpc::MessageSlices received(message);
  status_ = received.ok ? Read(received.parts) : call::NotParsed();
  if (!status_.ok()) return;
  input_status_ = CheckInput();
  if (!input_status_.ok() || images_ > max_images) return;
  input_status_ = Split(received.slices, received.parts);
}

absl::Status ReceivedInference::Read(
    absl::Span<const absl::string_view> parts) {
  absl::Status status = WalkInferRequest(parts, &wire_);
  if (status.ok() && !message_.ParseFromString(wire_.rest)) {
    status = call::NotParsed();
  }
  if (!status.ok()) message_.Clear();
  wire_.rest = std::string();
  return status;
}

absl::Span<const int64_t> ReceivedInference::shape() const {
  const auto& shape = message_.inputs(0).shape();
  return absl::Span<const int64_t>(shape.data(), shape.size());
}

absl::Status ReceivedInference::CheckInput() {
  absl::Status status;
  // Before the counts: an input in shared memory has no contents.
  if (wire_.inputs > 0) status = CheckNoRegion(message_.inputs(0).parameters());
  if (status.ok()) status = CheckCounts(wire_);
  if (!status.ok()) return status;
  const auto& input = message_.inputs(0);
  if (input.name() != kInputName) {
    return server::InvalidField(
        "inputs[0].name",
        absl::StrCat("got \"", base::Utf8Prefix(input.name(), kMaxNameShown),
                     "\", expected \"", kInputName, "\""));
  }
  const absl::StatusOr<ElementType> type = ParseElementType(input.datatype());
  if (!type.ok()) return server::AtField("inputs[0].datatype", type.status());
  type_ = *type;
  const absl::StatusOr<int64_t> images = CountImages(type_, shape());
  if (!images.ok()) return server::AtField("inputs[0].shape", images.status());
  images_ = static_cast<int>(
      std::min<int64_t>(*images, std::numeric_limits<int>::max()));
  return absl::OkStatus();
}

absl::Status ReceivedInference::Split(
    absl::Span<const grpc::Slice> slices,
    absl::Span<const absl::string_view> parts) {
  if (!raw() && !type_.is_bytes()) return CopyTypedNumbers(parts);
  const absl::StatusOr<std::vector<call::WireExtent>> extents =
      !raw()             ? SplitTypedFiles(parts, images_, wire_.contents)
      : type_.is_bytes() ? SplitRawFiles(parts, images_, wire_.raw)
                         : SplitRawNumbers(type_, shape(), images_, wire_.raw);
  if (!extents.ok()) {
    return server::AtField(raw() ? kRawField : kContentsField,
                           extents.status());
  }
  pictures_ = rpc::PictureBytes(slices, *extents);
  return absl::OkStatus();
}

absl::Status ReceivedInference::CopyTypedNumbers(
    absl::Span<const absl::string_view> parts) {
  const int64_t image = BytesOfImage(type_, shape());
  const int64_t bytes = images_ * image;
  const int64_t elements = bytes / type_.bytes;
  // Every element takes at least its size on the wire. The check comes before
  // memory is allocated for what a shape merely claims.
  if (bytes > wire_.contents.length) {
    return server::InvalidField(
        kContentsField,
        absl::StrCat("got ", wire_.contents.length, " bytes, expected ",
                     elements, " elements as the shape has"));
  }
  const grpc::Slice copy(bytes);
  const absl::Status status =
      ReadTypedNumbers(parts, type_, elements, wire_.contents,
                       const_cast<uint8_t*>(copy.begin()));
  if (!status.ok()) return server::AtField(kContentsField, status);
  std::vector<call::WireExtent> extents;
  for (int i = 0; i < images_; ++i) extents.push_back({i * image, image});
  pictures_ = rpc::PictureBytes({copy}, extents);
  bytes_ += copy.size();
  return absl::OkStatus();
}

absl::StatusOr<image::ImageSource> ReceivedInference::Image(int i) {
  image::ImageSource source;
  if (files()) {
    // A file's header is read before it is admitted.
    const absl::string_view bytes = pictures_.View(i);
    if (pictures_.CrossesSlices(i)) pictures_.Join(i);
    source.source = image::EncodedImage{bytes};
    return source;
  }
  auto& tensor = source.source.emplace<image::InputTensor>();
  tensor.type = type_.type;
  tensor.shape = shape().subspan(1);
  if (pictures_.CrossesSlices(i)) {
    tensor.pieces = pictures_.Pieces(i);
  } else {
    tensor.data = pictures_.View(i);
  }
  return source;
}

absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire) {
  return Walker(parts, wire).Walk();
}

}  // namespace sfmamba::kserve
