#include "client/eval/coco_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"

namespace sfmamba::client {
namespace {

using nlohmann::json;

constexpr int kLargestSide = 65535;  // Longer sides are not decoded.

std::optional<int64_t> WholeNumber(const json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > std::numeric_limits<int64_t>::max()) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  constexpr double kExact = int64_t{1} << 53;  // Larger doubles are not exact.
  const double number = value.get<double>();
  if (number != std::floor(number) || std::abs(number) > kExact) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

std::string Shown(const json& value) {
  constexpr size_t kLongest = 40;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

absl::StatusOr<CocoJson> CocoJson::Parse(const std::string& file,
                                         const std::string& text) {
  auto root = std::make_shared<json>();
  try {
    *root = json::parse(text);
  } catch (const json::exception& error) {
    // Drops the exception's name, which is in brackets.
    const std::string why = error.what();
    const size_t begin = why.find("] ");
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": not JSON: ",
                     why.substr(begin == std::string::npos ? 0 : begin + 2)));
  }
  const CocoJson whole(root, root.get(), file);
  if (!root->is_object()) {
    return whole.Error("expected an object with images and annotations");
  }
  return whole;
}

CocoJson CocoJson::at(size_t index) const {
  return CocoJson(root_, &(*value_)[index],
                  absl::StrCat(where_, "[", index, "]"));
}

bool CocoJson::Has(const std::string& key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

absl::StatusOr<CocoJson> CocoJson::Get(const std::string& key) const {
  if (!value_->is_object()) return Wrong("an object");
  if (!Has(key)) return Error(absl::StrCat("has no \"", key, "\""));
  const bool is_root = value_ == root_.get();
  return CocoJson(root_, &*value_->find(key),
                  absl::StrCat(where_, is_root ? ": " : ".", key));
}

absl::StatusOr<CocoJson> CocoJson::AsList() const {
  if (value_->is_array()) return *this;
  return Wrong("a list");
}

absl::StatusOr<std::string> CocoJson::AsText() const {
  if (value_->is_string()) return value_->get<std::string>();
  return Wrong("text");
}

absl::StatusOr<int64_t> CocoJson::AsWhole() const {
  if (const auto number = WholeNumber(*value_)) return *number;
  return Wrong("a whole number");
}

absl::StatusOr<int> CocoJson::AsSide() const {
  const std::optional<int64_t> side = WholeNumber(*value_);
  if (side && *side >= 1 && *side <= kLargestSide) {
    return static_cast<int>(*side);
  }
  return Wrong(absl::StrCat("a whole number, 1 to ", kLargestSide));
}

absl::StatusOr<bool> CocoJson::AsFlag() const {
  if (value_->is_boolean()) return value_->get<bool>();
  if (*value_ == 0 || *value_ == 1) return *value_ == 1;
  return Wrong("0 or 1");
}

absl::StatusOr<std::vector<double>> CocoJson::AsNumbers() const {
  if (value_->is_array() &&
      std::all_of(value_->begin(), value_->end(),
                  [](const json& one) { return one.is_number(); })) {
    return value_->get<std::vector<double>>();
  }
  return Wrong("a list of numbers");
}

absl::StatusOr<std::vector<int64_t>> CocoJson::AsWholes() const {
  if (!value_->is_array()) return Wrong("a list of whole numbers");
  std::vector<int64_t> numbers;
  for (const json& one : *value_) {
    const std::optional<int64_t> number = WholeNumber(one);
    if (!number) return Wrong("a list of whole numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

absl::StatusOr<CocoJson> CocoJson::List(const std::string& key) const {
  const absl::StatusOr<CocoJson> member = Get(key);
  return member.ok() ? member->AsList() : member.status();
}

absl::StatusOr<std::string> CocoJson::Text(const std::string& key) const {
  const absl::StatusOr<CocoJson> member = Get(key);
  return member.ok() ? member->AsText() : member.status();
}

absl::StatusOr<int64_t> CocoJson::Whole(const std::string& key) const {
  const absl::StatusOr<CocoJson> member = Get(key);
  return member.ok() ? member->AsWhole() : member.status();
}

absl::StatusOr<int> CocoJson::Side(const std::string& key) const {
  const absl::StatusOr<CocoJson> member = Get(key);
  return member.ok() ? member->AsSide() : member.status();
}

absl::Status CocoJson::Wrong(absl::string_view expected) const {
  return Error(absl::StrCat("got ", Shown(*value_), ", expected ", expected));
}

absl::Status CocoJson::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(where_, ": ", message));
}

}  // namespace sfmamba::client
