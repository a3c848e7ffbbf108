#include "server/observability/trace_context.h"

#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace sfmamba::observability {
namespace {

bool IsLowerHex(absl::string_view text, size_t length) {
  return text.size() == length &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool IsId(absl::string_view text, size_t length) {
  return IsLowerHex(text, length) && text.find_first_not_of('0') != text.npos;
}

}  // namespace

std::string TraceIdOf(absl::string_view traceparent) {
  const std::vector<absl::string_view> parts = absl::StrSplit(traceparent, '-');
  if (parts.size() != 4 || parts[0] != "00" || !IsId(parts[1], 32) ||
      !IsId(parts[2], 16) || !IsLowerHex(parts[3], 2)) {
    return "";
  }
  return std::string(parts[1]);
}

std::string NewTraceId() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  uint64_t high = 0;
  while (high == 0) high = random();
  return absl::StrFormat("%016x%016x", high, random());
}

}  // namespace sfmamba::observability
