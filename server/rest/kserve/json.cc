#include "server/rest/kserve/json.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/errors/error.h"
#include "server/errors/reasons.h"
#include "server/rest/kserve/elements.h"
#include "server/rest/kserve/json_keys.h"
#include "server/rest/kserve/json_scalar.h"
#include "server/rest/kserve/json_tokens.h"

namespace sfmamba::rest {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr size_t kMaxKeyShown = 64;  // Bytes.
// No model has as many; a request with more is refused before it is kept.
constexpr int kMaxTensors = 16;
constexpr int kMaxDimensions = 16;
constexpr int kMaxParameters = 64;
// nlohmann's number of the error for a number beyond a double's range.
constexpr int kNumberOverflow = 406;

std::string Expected(absl::string_view got, absl::string_view expected) {
  return absl::StrCat("got ", got, ", expected ", expected);
}

// Takes what nlohmann's parser finds, one after another. A method that returns
// false ends the parse, and `status` says why.
class Reader {
 public:
  Reader(int64_t json_bytes, int64_t max_raw_bytes)
      : json_bytes_(json_bytes),
        raw_bytes_left_(max_raw_bytes),
        elements_(json_bytes, max_raw_bytes) {
    stack_.push_back({Place::kTop});
  }

  const absl::Status& status() const { return status_; }
  InferJson& result() { return result_; }

  bool null() { return Value(nullptr); }
  bool boolean(bool value) { return Value(value); }
  bool number_integer(int64_t value) { return Value(value); }
  bool number_unsigned(uint64_t value) {
    if (value > std::numeric_limits<int64_t>::max()) return Value(value);
    return Value(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) { return Value(value); }
  bool string(std::string& value) { return Value(&value); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // Never in JSON.

  bool start_object(size_t) { return Start(Form::kObject); }
  bool start_array(size_t) { return Start(Form::kArray); }
  bool key(std::string& name);
  bool end_object();
  bool end_array() {
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    status_ = server::MalformedMessage(
        error.id == kNumberOverflow
            ? absl::StrCat("got a number beyond the range of a double, byte ",
                           position, " of the JSON")
            : absl::StrCat("got no JSON from byte ", position, " on"));
    return false;
  }

 private:
  struct Frame {
    Place place;
    std::string key;    // An object's key whose value is being read.
    uint32_t seen = 0;  // Known keys seen so far, as bits.
  };

  bool Fail(absl::string_view message) {
    status_ = server::InvalidField(Field(), message);
    return false;
  }
  // True if `status` is OK; its error is put at the field.
  bool Pass(const absl::Status& status) {
    if (!status.ok()) status_ = server::AtField(Field(), status);
    return status.ok();
  }

  // Names the parser's position: "inputs[0].shape[1]".
  std::string Field() const;
  InputData& input() { return result_.inputs.back(); }

  bool Start(Form form);
  // Returns the place inside an object or array that begins here, or an error
  // if none may.
  absl::StatusOr<Place> Inside(Form form) const;
  bool Open(Place place);

  bool Value(Scalar value);
  bool KnownValue(const Scalar& value);
  bool Dimension(const Scalar& value);
  bool Element(const Scalar& value);
  bool Parameter(const Scalar& value);
  // Whether the current parameter is one that only REST has.
  bool IsOwnParameter(Place owner) const;
  bool OwnParameter(Place owner, const Scalar& value);
  bool EndInput();

  const int64_t json_bytes_;
  InferJson result_;
  absl::Status status_;
  std::vector<Frame> stack_;
  int parameters_ = 0;  // Parameters in all maps.
  // The current input's elements, and the bytes that it may still have.
  int64_t raw_bytes_left_;
  JsonElements elements_;
};

std::string Reader::Field() const {
  std::string field;
  for (const Frame& frame : stack_) {
    const std::string key = frame.key.substr(0, kMaxKeyShown);
    switch (frame.place) {
      case Place::kRequest:
        field = key;
        break;
      case Place::kInput:
        absl::StrAppend(&field, "[", result_.message.inputs_size() - 1, "].",
                        key);
        break;
      case Place::kOutput:
        absl::StrAppend(&field, "[", result_.message.outputs_size() - 1, "].",
                        key);
        break;
      case Place::kParameters:
        absl::StrAppend(&field, ".", key);
        break;
      case Place::kShape:
        absl::StrAppend(
            &field, "[",
            result_.message.inputs(result_.message.inputs_size() - 1)
                .shape_size(),
            "]");
        break;
      default:
        break;
    }
  }
  return field;
}

bool Reader::key(std::string& name) {
  Frame& frame = stack_.back();
  frame.key = std::move(name);
  const Key* key = FindKey(frame.place, frame.key);
  if (key == nullptr) return true;
  const uint32_t bit = uint32_t{1} << (key - kKeys);
  if ((frame.seen & bit) != 0) return Fail("got it twice, expected it once");
  frame.seen |= bit;
  return true;
}

absl::StatusOr<Place> Reader::Inside(Form form) const {
  const Frame& frame = stack_.back();
  const Key* key = FindKey(frame.place, frame.key);
  Form expected = Form::kObject;
  Place inside = Place::kIgnored;
  switch (frame.place) {
    case Place::kTop:
      inside = Place::kRequest;
      break;
    case Place::kInputs:
      inside = Place::kInput;
      break;
    case Place::kOutputs:
      inside = Place::kOutput;
      break;
    case Place::kData:
      return form == Form::kArray ? Place::kData : Place::kFile;
    case Place::kShape:
      return absl::InvalidArgumentError(Expected(FormName(form), "an integer"));
    case Place::kParameters:
      return absl::InvalidArgumentError(
          Expected(FormName(form), "a boolean, a number or a string"));
    default:
      if (key == nullptr) return Place::kIgnored;
      expected = key->form;
      inside = key->inside;
  }
  if (form == expected) return inside;
  return absl::InvalidArgumentError(
      Expected(FormName(form), FormName(expected)));
}

bool Reader::Start(Form form) {
  if (stack_.size() > kMaxDepth) {
    status_ = server::MalformedMessage(absl::StrCat(
        "got JSON more than ", kMaxDepth, " levels deep, expected fewer"));
    return false;
  }
  const absl::StatusOr<Place> inside = Inside(form);
  return inside.ok() ? Open(*inside) : Fail(inside.status().message());
}

bool Reader::Open(Place place) {
  inference::ModelInferRequest& message = result_.message;
  if (place == Place::kInput) {
    if (message.inputs_size() == kMaxTensors) {
      return Fail(absl::StrCat("got more than ", kMaxTensors,
                               ", expected one, \"image\""));
    }
    message.add_inputs();
    result_.inputs.emplace_back();
    elements_ = JsonElements(json_bytes_, raw_bytes_left_);
  } else if (place == Place::kOutput) {
    if (message.outputs_size() == kMaxTensors) {
      return Fail(absl::StrCat("got more than ", kMaxTensors,
                               ", expected each of the model's once"));
    }
    message.add_outputs();
    result_.binary_outputs.emplace_back();
  }
  stack_.push_back({place});
  return true;
}

bool Reader::end_object() {
  const Frame& frame = stack_.back();
  if (frame.place == Place::kFile && frame.seen == 0) {
    return Fail("got an object, expected {\"b64\": \"<base64>\"}");
  }
  if (frame.place == Place::kInput && !EndInput()) return false;
  stack_.pop_back();
  return true;
}

bool Reader::EndInput() {
  // The elements' type is known only now: "datatype" may come after "data".
  Frame& frame = stack_.back();
  frame.key = "data";
  const bool has_data =
      (frame.seen >> (FindKey(Place::kInput, "data") - kKeys)) & 1;
  if (!has_data) return true;
  if (input().binary_bytes.has_value()) {
    return Fail(
        "got it beside parameters.binary_data_size, expected one of them");
  }
  const auto& message =
      result_.message.inputs(result_.message.inputs_size() - 1);
  absl::StatusOr<std::string> raw = elements_.Take(message.datatype());
  if (!raw.ok()) return Pass(raw.status());
  raw_bytes_left_ -= raw->size();
  input().raw = *std::move(raw);
  return true;
}

bool Reader::Value(Scalar value) {
  switch (stack_.back().place) {
    case Place::kTop:
    case Place::kInputs:
    case Place::kOutputs:
      return Fail(Expected(NameOf(value), "an object"));
    case Place::kParameters:
      return Parameter(value);
    case Place::kShape:
      return Dimension(value);
    case Place::kData:
      return Element(value);
    case Place::kIgnored:
      return true;
    default:
      return KnownValue(value);
  }
}

bool Reader::KnownValue(const Scalar& value) {
  const Frame& frame = stack_.back();
  const Key* key = FindKey(frame.place, frame.key);
  if (key == nullptr) return true;
  auto* const* text = std::get_if<std::string*>(&value);
  if (key->form != Form::kString || text == nullptr) {
    return Fail(Expected(NameOf(value), FormName(key->form)));
  }
  inference::ModelInferRequest& message = result_.message;
  if (frame.place == Place::kRequest) {
    message.set_id(std::move(**text));
  } else if (frame.place == Place::kOutput) {
    message.mutable_outputs()->rbegin()->set_name(std::move(**text));
  } else if (frame.place == Place::kFile) {
    return Pass(elements_.AddBase64(**text));
  } else if (key->name == "name") {
    message.mutable_inputs()->rbegin()->set_name(std::move(**text));
  } else {
    message.mutable_inputs()->rbegin()->set_datatype(std::move(**text));
  }
  return true;
}

bool Reader::Dimension(const Scalar& value) {
  auto* shape = result_.message.mutable_inputs()->rbegin()->mutable_shape();
  const int64_t* side = std::get_if<int64_t>(&value);
  if (side == nullptr) {
    return Fail(Expected(NameOf(value), "an integer of 64 bits"));
  }
  if (shape->size() == kMaxDimensions) {
    return Fail(absl::StrCat("got more than ", kMaxDimensions,
                             " dimensions, expected 1, 2 or 4"));
  }
  shape->Add(*side);
  return true;
}

bool Reader::Element(const Scalar& value) {
  if (auto* const* text = std::get_if<std::string*>(&value)) {
    return Pass(elements_.AddBytes(**text));
  }
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return Pass(elements_.AddNumber(static_cast<double>(*integer)));
  }
  if (const auto* large = std::get_if<uint64_t>(&value)) {
    return Pass(elements_.AddNumber(static_cast<double>(*large)));
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return Pass(elements_.AddNumber(*number));
  }
  return Fail(Expected(NameOf(value), "numbers or strings"));
}

bool Reader::IsOwnParameter(Place owner) const {
  const std::string& name = stack_.back().key;
  return (owner == Place::kRequest && name == "binary_data_output") ||
         (owner == Place::kInput && name == "binary_data_size") ||
         (owner == Place::kOutput && name == "binary_data");
}

bool Reader::OwnParameter(Place owner, const Scalar& value) {
  if (owner == Place::kInput) {
    const int64_t* bytes = std::get_if<int64_t>(&value);
    if (bytes == nullptr || *bytes < 0) {
      return Fail(
          Expected(bytes == nullptr ? NameOf(value) : absl::StrCat(*bytes),
                   "an integer of 0 or more"));
    }
    input().binary_bytes = *bytes;
    return true;
  }
  const bool* binary = std::get_if<bool>(&value);
  if (binary == nullptr) return Fail(Expected(NameOf(value), "a boolean"));
  if (owner == Place::kRequest) {
    result_.binary_output = *binary;
  } else {
    result_.binary_outputs.back() = *binary;
  }
  return true;
}

bool Reader::Parameter(const Scalar& value) {
  const Place owner = stack_[stack_.size() - 2].place;
  if (++parameters_ > kMaxParameters) {
    return Fail(absl::StrCat("got more than ", kMaxParameters,
                             " parameters, expected fewer"));
  }
  if (IsOwnParameter(owner)) return OwnParameter(owner, value);
  inference::ModelInferRequest& message = result_.message;
  auto* map = owner == Place::kRequest ? message.mutable_parameters()
              : owner == Place::kInput
                  ? message.mutable_inputs()->rbegin()->mutable_parameters()
                  : message.mutable_outputs()->rbegin()->mutable_parameters();
  const std::string& name = stack_.back().key;
  if (map->contains(name)) return Fail("got it twice, expected it once");
  inference::InferParameter parameter;
  if (!ToParameter(value, &parameter)) {
    return Fail(Expected("null", "a boolean, a number or a string"));
  }
  (*map)[name] = std::move(parameter);
  return true;
}

}  // namespace

absl::StatusOr<InferJson> ReadInferJson(absl::string_view json,
                                        int64_t max_raw_bytes) {
  const absl::Status tokens = CheckJsonTokens(json);
  if (!tokens.ok()) return tokens;
  Reader reader(json.size(), max_raw_bytes);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return reader.status();
  }
  return std::move(reader.result());
}

}  // namespace sfmamba::rest
