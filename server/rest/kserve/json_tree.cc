#include "server/rest/kserve/json_tree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/errors/reasons.h"

namespace sfmamba::rest {
namespace {

using Json = nlohmann::json;
using Kind = Json::value_t;

constexpr size_t kMaxDepth = 32;
// The maximum number of bytes of an object's key in an error message.
constexpr size_t kMaxKeyShown = 64;
// kMaxStringBytes is the maximum size of a JSON string in bytes. The limit is
// high, because a string may be a picture in base64. kMaxWordBytes is the
// maximum size in bytes of any other token, such as a number.
constexpr size_t kMaxStringBytes = 16 << 20;
constexpr size_t kMaxWordBytes = 1 << 10;
// The maximum number of JSON values besides the elements of `data`. All these
// values are stored in memory as a tree.
constexpr int kMaxValues = 4096;
// The maximum number of inputs that have data. No model has more inputs.
constexpr size_t kMaxInputs = 16;
// A BYTES element begins with its length, an integer of this many bytes.
constexpr int kLengthBytes = 4;
// The id of nlohmann's error for a number outside the range of a double.
constexpr int kNumberOverflow = 406;

absl::Status Error(absl::string_view message) {
  return server::InvalidField("", message);
}

bool EndsWord(char c) {
  return c == ',' || c == ' ' || c == '[' || c == ']' || c == '{' || c == '}' ||
         c == ':' || c == '\n' || c == '\r' || c == '\t';
}

// Returns an error if a string or another token is too long. Without this
// check, the parser would hold several copies of a very long token. The text
// may be invalid JSON, because the parser runs later. The check may then
// misread the text after the first syntax error. This does no harm, because the
// request fails in any case.
absl::Status CheckWords(absl::string_view json) {
  size_t begin = 0;
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    if (in_string) {
      if (json[at] == '"') begin = at + 1;
      in_string = json[at] != '"';
      if (json[at] == '\\') ++at;
    } else if (json[at] == '"') {
      begin = at;
      in_string = true;
    } else if (EndsWord(json[at])) {
      begin = at + 1;
    }
    const size_t most = in_string ? kMaxStringBytes : kMaxWordBytes;
    if (at >= begin + most) {
      return server::MalformedMessage(absl::StrCat(
          "got ", in_string ? "a string" : "a word", " of more than ", most,
          " bytes from byte ", begin,
          " of the JSON on, expected fewer; binary data may be longer"));
    }
  }
  return absl::OkStatus();
}

// Receives the events of nlohmann's SAX parser. Collects the elements of
// inputs[i].data and stores all other values in a tree. A method that returns
// false stops the parser and sets `status`.
class Reader {
 public:
  Reader(int64_t json_bytes, int64_t max_raw_bytes)
      : json_bytes_(json_bytes), raw_bytes_left_(max_raw_bytes) {}

  const absl::Status& status() const { return status_; }
  InferTree& tree() { return tree_; }

  bool null() { return Value(nullptr); }
  bool boolean(bool value) { return Value(value); }
  bool number_integer(int64_t value) { return Number(value); }
  bool number_unsigned(uint64_t value) { return Number(value); }
  bool number_float(double value, const std::string&) { return Number(value); }
  bool string(std::string& value) {
    if (data_depth_ == 0) return Value(std::move(value));
    if (!in_file_) return Pass(elements().AddBytes(value));
    return Pass(elements().AddBase64(value));
  }
  bool binary(Json::binary_t&) { return false; }  // JSON has no binary values.

  bool start_object(size_t) {
    if (data_depth_ == 0) return Open(Json::object());
    if (in_file_) return Pass(WrongKind("", Kind::object, "a string"));
    in_file_ = true;
    has_file_ = false;
    return true;
  }
  bool key(std::string& name);
  bool end_object() {
    if (data_depth_ == 0) return Close();
    in_file_ = false;
    return has_file_ ||
           Pass(WrongKind("", Kind::object, "{\"b64\": \"<base64>\"}"));
  }
  bool start_array(size_t);
  bool end_array() {
    if (data_depth_ == 0) return Close();
    if (--data_depth_ == 0) raw_bytes_left_ -= elements().bytes();
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const Json::exception& error) {
    return Malformed(
        error.id == kNumberOverflow
            ? absl::StrCat("got a number beyond the range of a double, byte ",
                           position, " of the JSON")
            : absl::StrCat("got no JSON from byte ", position, " on"));
  }

 private:
  struct Frame {
    Json* value;      // The open object or array.
    std::string key;  // The current key if the value is an object.
  };

  bool Malformed(absl::string_view message) {
    status_ = server::MalformedMessage(message);
    return false;
  }
  // If `status` is OK, returns true. If `status` is an error, stores it and
  // returns false. The field of the stored error is the current position.
  bool Pass(const absl::Status& status) {
    if (!status.ok()) status_ = server::AtField(Field(), status);
    return status.ok();
  }
  JsonElements& elements() { return tree_.data.back().second; }

  // Returns the current position in the JSON, such as "inputs[0].shape[1]".
  std::string Field() const;
  // Returns true if an array that starts now is inputs[i].data.
  bool IsData() const;
  bool Open(Json value);
  bool Close() {
    stack_.pop_back();
    return true;
  }
  bool Value(Json value);
  template <typename T>
  bool Number(T value) {
    if (data_depth_ == 0) return Value(value);
    if (in_file_) return Pass(WrongKind("", Json(value).type(), "a string"));
    return Pass(elements().AddNumber(static_cast<double>(value)));
  }
  // Adds a null value to the tree at the current position and returns a pointer
  // to the value. Returns null and sets the error if there are too many values
  // or if the key is a duplicate.
  Json* Place();

  const int64_t json_bytes_;
  int64_t raw_bytes_left_;
  absl::Status status_;
  InferTree tree_;
  int values_ = 0;
  std::vector<Frame> stack_;
  // The number of open arrays that are inputs[i].data or nested in it.
  size_t data_depth_ = 0;
  bool in_file_ = false;  // True within an element {"b64": ...}.
  bool has_file_ = false;
};

std::string Reader::Field() const {
  std::string field;
  for (const Frame& frame : stack_) {
    if (frame.value->is_object()) {
      absl::StrAppend(&field, field.empty() ? "" : ".",
                      frame.key.substr(0, kMaxKeyShown));
    } else if (!frame.value->empty()) {
      absl::StrAppend(&field, "[", frame.value->size() - 1, "]");
    }
  }
  return field;
}

bool Reader::key(std::string& name) {
  if (data_depth_ == 0) {
    stack_.back().key = std::move(name);
    return true;
  }
  if (name != "b64" || std::exchange(has_file_, true)) {
    return Pass(WrongKind("", Kind::object, "{\"b64\": \"<base64>\"}"));
  }
  return true;
}

Json* Reader::Place() {
  if (++values_ > kMaxValues) {
    Malformed(absl::StrCat("got more than ", kMaxValues,
                           " values beside the inputs' data"));
    return nullptr;
  }
  if (stack_.empty()) return &tree_.root;
  Json& outer = *stack_.back().value;
  if (outer.is_array()) {
    outer.push_back(nullptr);
    return &outer.back();
  }
  const auto [at, is_new] = outer.emplace(stack_.back().key, nullptr);
  if (is_new) return &*at;
  Pass(server::InvalidField("", "got it twice, expected it once"));
  return nullptr;
}

bool Reader::Value(Json value) {
  if (data_depth_ > 0) {
    return Pass(WrongKind("", value.type(),
                          in_file_ ? "a string" : "numbers or strings"));
  }
  Json* place = Place();
  if (place != nullptr) *place = std::move(value);
  return place != nullptr;
}

bool Reader::Open(Json value) {
  if (stack_.size() >= kMaxDepth) {
    return Malformed(absl::StrCat("got JSON more than ", kMaxDepth,
                                  " levels deep, expected fewer"));
  }
  // Stops the parser early if the root is not an object.
  if (stack_.empty() && !value.is_object()) {
    return Pass(WrongKind("", value.type(), "an object"));
  }
  Json* place = Place();
  if (place == nullptr) return false;
  *place = std::move(value);
  stack_.push_back({place, ""});
  return true;
}

bool Reader::IsData() const {
  return stack_.size() == 3 && stack_[0].key == "inputs" &&
         stack_[1].value->is_array() && stack_[2].value->is_object() &&
         stack_[2].key == "data";
}

bool Reader::start_array(size_t) {
  if (data_depth_ == 0 && !IsData()) return Open(Json::array());
  if (in_file_) return Pass(WrongKind("", Kind::array, "a string"));
  if (data_depth_ == 0) {
    if (tree_.data.size() == kMaxInputs) {
      return Malformed(absl::StrCat("got data of more than ", kMaxInputs,
                                    " inputs, expected one"));
    }
    Json* place = Place();
    if (place == nullptr) return false;
    *place = Json::array();
    tree_.data.emplace_back(stack_[1].value->size() - 1,
                            JsonElements(json_bytes_, raw_bytes_left_));
  }
  if (stack_.size() + ++data_depth_ > kMaxDepth) {
    return Malformed(absl::StrCat("got JSON more than ", kMaxDepth,
                                  " levels deep, expected fewer"));
  }
  return true;
}

}  // namespace

absl::Status JsonElements::Begin(Kind kind, int64_t bytes) {
  if (kind_ == Kind::kNone) {
    kind_ = kind;
    // Reserves the maximum size now, because a buffer that grows must copy its
    // elements. The buffer needs at most twice the size of the JSON. A number
    // takes four bytes in the buffer, and a number and its comma take at least
    // two bytes in JSON. The reserved memory costs little, because the system
    // provides a page only when the page is written.
    raw_.reserve(std::min(max_bytes_, 2 * json_bytes_));
  }
  if (kind_ != kind) {
    return Error(absl::StrCat("got numbers and strings, the first after ",
                              count_, " elements, expected one of them"));
  }
  if (bytes > max_bytes_ - static_cast<int64_t>(raw_.size())) {
    return Error(absl::StrCat("got more than ", max_bytes_,
                              " bytes of elements, expected less"));
  }
  return absl::OkStatus();
}

absl::Status JsonElements::AddNumber(double value) {
  const absl::Status status = Begin(Kind::kNumbers, sizeof(float));
  if (!status.ok()) return status;
  if (not_uint8_.ok() &&
      !(value >= 0 && value <= 255 && value == static_cast<uint8_t>(value))) {
    not_uint8_ = Error(absl::StrCat("got ", value, " as element ", count_,
                                    ", expected an integer of 0 to 255"));
  }
  if (not_fp32_.ok() && std::abs(value) > std::numeric_limits<float>::max()) {
    not_fp32_ = Error(absl::StrCat("got ", value, " as element ", count_,
                                   ", expected a number that FP32 has"));
  }
  // A value outside the range of float cannot be converted, because the
  // conversion would be undefined behavior. This value and all later values are
  // stored as 0. The zeros are never used, because Take() returns an error.
  const float number = not_fp32_.ok() ? static_cast<float>(value) : 0;
  raw_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  ++count_;
  return absl::OkStatus();
}

absl::Status JsonElements::AddBytes(absl::string_view bytes) {
  const int64_t size = bytes.size();
  const absl::Status status = Begin(Kind::kBytes, kLengthBytes + size);
  if (!status.ok()) return status;
  const uint32_t length = static_cast<uint32_t>(size);
  raw_.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  raw_.append(bytes.data(), bytes.size());
  ++count_;
  return absl::OkStatus();
}

absl::Status JsonElements::AddBase64(absl::string_view text) {
  std::string bytes;
  if (absl::Base64Unescape(text, &bytes)) return AddBytes(bytes);
  return Error(absl::StrCat("got no base64 as element ", count_,
                            ", expected {\"b64\": \"<base64>\"}"));
}

std::string JsonElements::Narrow() const {
  std::string bytes(count_, '\0');
  for (int64_t i = 0; i < count_; ++i) {
    float number;
    std::memcpy(&number, &raw_[i * sizeof(number)], sizeof(number));
    bytes[i] = static_cast<char>(static_cast<uint8_t>(number));
  }
  return bytes;
}

absl::StatusOr<std::string> JsonElements::Take(absl::string_view datatype) {
  const bool bytes = datatype == "BYTES";
  if (bytes && kind_ == Kind::kNumbers) {
    return Error("got numbers, expected the strings of BYTES");
  }
  if (!bytes && kind_ == Kind::kBytes) {
    return Error("got strings, expected numbers, or the datatype BYTES");
  }
  if (datatype == "FP16" || datatype == "BF16") {
    return Error(absl::StrCat("got numbers of ", datatype,
                              ", which exist as binary data only"));
  }
  if (datatype == "UINT8") {
    if (!not_uint8_.ok()) return not_uint8_;
    return Narrow();
  }
  if (!bytes && !not_fp32_.ok()) return not_fp32_;
  return std::move(raw_);
}

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::number_integer:
    case Kind::number_unsigned:
      return "an integer";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
    default:
      return "a number";
  }
}

absl::Status WrongKind(absl::string_view field, Kind got,
                       absl::string_view expected) {
  return server::InvalidField(
      field, absl::StrCat("got ", KindName(got), ", expected ", expected));
}

absl::StatusOr<InferTree> ReadInferTree(absl::string_view json,
                                        int64_t max_raw_bytes) {
  const absl::Status words = CheckWords(json);
  if (!words.ok()) return words;
  Reader reader(json.size(), max_raw_bytes);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    return reader.status();
  }
  if (reader.tree().root.is_object()) return std::move(reader.tree());
  return WrongKind("", reader.tree().root.type(), "an object");
}

}  // namespace sfmamba::rest
