#include "server/api/kserve/infer_parameters.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/utf8.h"
#include "server/errors/reasons.h"
#include "server/shares/priority.h"

namespace sfmamba::kserve {
namespace {

using inference::InferParameter;

constexpr char kWantsFinalMark[] = "triton_enable_empty_final_response";
// The maximum number of bytes of a parameter's name in an error message.
constexpr size_t kMaxNameShown = 64;
// The maximum number of bytes of a string value in an error message.
constexpr size_t kMaxShown = 100;
constexpr int kMaxClassification = 1 << 20;

// Returns the value as text for an error. Truncates long strings.
std::string Shown(const InferParameter& value) {
  if (value.has_string_param()) {
    return absl::StrCat(
        "string_param: \"",
        absl::CEscape(value.string_param().substr(0, kMaxShown)), "\"");
  }
  const std::string text = value.ShortDebugString();
  return text.empty() ? "none" : text;
}

absl::Status Invalid(absl::string_view name, const InferParameter& got,
                     absl::string_view expected) {
  return server::InvalidField(
      absl::StrCat("parameters.", base::Utf8Prefix(name, kMaxNameShown)),
      absl::StrCat("got ", Shown(got), ", expected ", expected));
}

// Reads an integer of 0 or more, which a client may send as int64_param or
// uint64_param. Returns INVALID_ARGUMENT for all other values.
absl::Status ReadCount(absl::string_view name, const InferParameter& parameter,
                       int64_t* count) {
  if (parameter.has_int64_param() && parameter.int64_param() >= 0) {
    *count = parameter.int64_param();
    return absl::OkStatus();
  }
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  if (parameter.has_uint64_param() && parameter.uint64_param() <= kMax) {
    *count = parameter.uint64_param();
    return absl::OkStatus();
  }
  return Invalid(name, parameter, "an integer of 0 or more");
}

absl::Status ReadPriority(absl::string_view name,
                          const InferParameter& parameter,
                          server::Priority* priority) {
  int64_t level = 0;
  const absl::Status status = ReadCount(name, parameter, &level);
  if (!status.ok() || level == 0) return status;
  *priority = level == 1   ? server::Priority::kHigh
              : level == 2 ? server::Priority::kNormal
                           : server::Priority::kLow;
  return absl::OkStatus();
}

absl::Status ReadTimeout(absl::string_view name,
                         const InferParameter& parameter,
                         std::optional<absl::Duration>* wait) {
  int64_t microseconds = 0;
  const absl::Status status = ReadCount(name, parameter, &microseconds);
  if (status.ok() && microseconds > 0) *wait = absl::Microseconds(microseconds);
  return status;
}

// Returns an error if the parameter requests a sequence, which is a feature of
// Triton servers. Accepts 0 and empty values, which clients send by default.
absl::Status CheckNoSequence(absl::string_view name,
                             const InferParameter& parameter) {
  const bool none = !parameter.bool_param() && parameter.int64_param() == 0 &&
                    parameter.uint64_param() == 0 &&
                    parameter.double_param() == 0 &&
                    parameter.string_param().empty();
  if (none) return absl::OkStatus();
  return Invalid(name, parameter, "0: there are no sequences");
}

absl::Status ReadFraction(absl::string_view name,
                          const InferParameter& parameter,
                          std::optional<float>* fraction) {
  // Some clients send 1.0 as an integer, so int64_param is accepted too. The
  // prediction checks the range later.
  if (parameter.has_double_param()) {
    *fraction = parameter.double_param();
  } else if (parameter.has_int64_param()) {
    *fraction = parameter.int64_param();
  } else {
    return Invalid(name, parameter, "a double_param");
  }
  return absl::OkStatus();
}

absl::Status ReadParameter(absl::string_view name,
                           const InferParameter& parameter,
                           InferParameters* parameters) {
  if (name == "priority") {
    return ReadPriority(name, parameter, &parameters->options.priority);
  }
  if (name == "timeout") {
    return ReadTimeout(name, parameter, &parameters->options.max_queue_wait);
  }
  if (name == "score_threshold") {
    return ReadFraction(name, parameter, &parameters->score_threshold);
  }
  if (absl::StartsWith(name, "sequence_")) {
    return CheckNoSequence(name, parameter);
  }
  if (name == kWantsFinalMark) {
    return parameter.has_bool_param()
               ? absl::OkStatus()
               : Invalid(name, parameter, "a bool_param");
  }
  if (absl::StartsWith(name, "triton_")) {
    return Invalid(name, parameter, "no other parameters of this prefix");
  }
  return absl::OkStatus();
}

}  // namespace

bool WantsFinalMark(const inference::ModelInferRequest& request) {
  const auto found = request.parameters().find(kWantsFinalMark);
  return found != request.parameters().end() && found->second.bool_param();
}

absl::Status ReadParameters(const ParameterMap& map,
                            InferParameters* parameters) {
  for (const auto& [name, parameter] : map) {
    const absl::Status status = ReadParameter(name, parameter, parameters);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadOutputParameters(const ParameterMap& map,
                                  int* classification) {
  *classification = 0;
  const auto found = map.find("classification");
  if (found != map.end()) {
    int64_t count = 0;
    const absl::Status status =
        ReadCount("classification", found->second, &count);
    if (!status.ok() || count == 0 || count > kMaxClassification) {
      return server::InvalidField(
          ".parameters.classification",
          absl::StrCat("got ", Shown(found->second),
                       ", expected an int64_param of 1 or more"));
    }
    *classification = static_cast<int>(count);
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryRemoved() {
  return server::Removed("shared memory", "send tensors in the request");
}

absl::Status CheckNoRegion(const ParameterMap& map) {
  return map.contains("shared_memory_region") ? SharedMemoryRemoved()
                                              : absl::OkStatus();
}

}  // namespace sfmamba::kserve
