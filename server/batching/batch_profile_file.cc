#include "server/batching/batch_profile_file.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace sfmamba::batching {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "sfmamba batch profile 2";
constexpr size_t kMaxBytes = 4 << 20;
constexpr double kMaxSide = 1 << 16;    // Pixels.
constexpr double kMaxImages = 1 << 16;  // In a batch.
constexpr double kMaxMicroseconds = 3.6e9;

json ToJson(const BatchProfileKey& key) {
  return {{"format", kFormat},
          {"content", key.content},
          {"device", key.device},
          {"build", key.build}};
}

// A device's name may be any bytes, for which dump() throws by default.
std::string Text(const json& value, int indent = -1) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// The field, or null.
json Field(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? json() : *found;
}

// The number of that name, if it is in the range; else NaN.
double Number(const json& entry, const char* name, double low, double high) {
  const json field = Field(entry, name);
  const double value = field.is_number() ? field.get<double>() : NAN;
  return value >= low && value <= high ? value : NAN;
}

// Returns whether `entry` is the time of a batch.
bool ParseTime(const json& entry, BatchTime* time) {
  const double height = Number(entry, "height", 1, kMaxSide);
  const double width = Number(entry, "width", 1, kMaxSide);
  const double images = Number(entry, "images", 1, kMaxImages);
  const double median = Number(
      entry, "median_us", std::numeric_limits<double>::min(), kMaxMicroseconds);
  const double p95 = Number(entry, "p95_us", median, kMaxMicroseconds);
  const json type = Field(entry, "type");
  if (std::isnan(height + width + images + median + p95)) return false;
  if (type != "uint8" && type != "float32") return false;
  time->key = {static_cast<int>(height), static_cast<int>(width),
               type == "uint8" ? ImageType::kUint8 : ImageType::kFloat32};
  time->images = static_cast<int>(images);
  time->median = absl::Microseconds(median);
  time->p95 = absl::Microseconds(p95);
  return true;
}

}  // namespace

std::string BatchProfileText(const BatchProfileKey& key,
                             const std::vector<BatchTime>& times) {
  json document = ToJson(key);
  json& entries = document["times"] = json::array();
  for (const BatchTime& time : times) {
    entries.push_back(
        {{"height", time.key.height},
         {"width", time.key.width},
         {"type", time.key.type == ImageType::kUint8 ? "uint8" : "float32"},
         {"images", time.images},
         {"median_us", absl::ToDoubleMicroseconds(time.median)},
         {"p95_us", absl::ToDoubleMicroseconds(time.p95)}});
  }
  return Text(document, /*indent=*/1);
}

absl::StatusOr<std::vector<BatchTime>> ParseBatchProfile(
    const BatchProfileKey& key, absl::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at most ", kMaxBytes, " bytes, got ", text.size()));
  }
  const json document = json::parse(text.begin(), text.end(), nullptr,
                                    /*allow_exceptions=*/false);
  if (!document.is_object() || Field(document, "format") != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected JSON with format \"", kFormat, "\""));
  }
  const json wanted = ToJson(key);
  for (const auto& [name, expected] : wanted.items()) {
    const json got = Field(document, name.c_str());
    if (got == expected) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("measured for the ", name, " ", Text(got).substr(0, 80),
                     ", not for ", Text(expected)));
  }
  const json entries = Field(document, "times");
  if (!entries.is_array()) {
    return absl::InvalidArgumentError("times: expected a list");
  }
  std::vector<BatchTime> times;
  for (const json& entry : entries) {
    if (!ParseTime(entry, &times.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "times[", times.size() - 1, "]: expected the time of a batch, got ",
          Text(entry).substr(0, 200)));
    }
  }
  return times;
}

}  // namespace sfmamba::batching
