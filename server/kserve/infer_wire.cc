#include "server/kserve/infer_wire.h"

namespace sfmamba::kserve {
namespace {

using rpc::kMaxWireDepth;
using rpc::WireType;

// Fields of ModelInferRequest.
constexpr uint32_t kInputs = 5, kOutputs = 6, kRawInputs = 7;
// Field of InferInputTensor. The fields with smaller numbers are small.
constexpr uint32_t kContents = 5;

const char* NameOf(uint32_t number) {
  static constexpr const char* kNames[] = {
      "model_name", "model_version", "id", "parameters", "inputs", "outputs"};
  return number <= kOutputs ? kNames[number - 1] : "raw_input_contents";
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
      field_ = rpc::NumberOf(tag);
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
    const bool delimited = rpc::TypeOf(tag) == WireType::kLengthDelimited;
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
          const uint32_t number = rpc::NumberOf(inner);
          if (number == kContents &&
              rpc::TypeOf(inner) == WireType::kLengthDelimited) {
            ++wire_.contents_count;
            return cursor_.SkipBytes(end, &wire_.contents);
          }
          return number < kContents
                     ? copier_.Keep(inner, end, kMaxWireDepth - 1)
                     : cursor_.SkipField(inner, end, kMaxWireDepth - 1);
        });
  }

  rpc::WireCopier copier_;
  rpc::WireCursor& cursor_;
  InferWire& wire_;
  uint32_t field_ = 0;  // The request's field that is being read.
};

}  // namespace

absl::Status WalkInferRequest(absl::Span<const absl::string_view> parts,
                              InferWire* wire) {
  return Walker(parts, wire).Walk();
}

}  // namespace sfmamba::kserve
