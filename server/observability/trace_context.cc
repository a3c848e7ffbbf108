#include "server/observability/trace_context.h"

#include <algorithm>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace sfmamba::observability {
namespace {

// The offsets of the fields in a traceparent header, and the length of the
// header. The header has the form "vv-<32 digits>-<16 digits>-ff".
constexpr size_t kTraceAt = 3, kParentAt = 36, kFlagsAt = 53, kSize = 55;
constexpr uint64_t kSampledFlag = 1;

constexpr size_t kMaxTracestateBytes = 512;
constexpr size_t kMaxMembers = 32;
constexpr size_t kLargeMember = 128;
constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxValueBytes = 256;

// Parses up to 16 lower-case hexadecimal digits. Returns nullopt if there is
// any other character.
std::optional<uint64_t> ParseHex(absl::string_view digits) {
  uint64_t value = 0;
  for (const char c : digits) {
    if (c >= '0' && c <= '9') {
      value = value << 4 | (c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4 | (c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

bool IsKeyLetter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' ||
         c == '-' || c == '*' || c == '/' || c == '@';
}

bool IsValueLetter(char c) {
  return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

// Returns true if `member` has the form "key=value".
bool IsMember(absl::string_view member) {
  const size_t equals = member.find('=');
  if (equals == member.npos) return false;
  const absl::string_view key = member.substr(0, equals);
  const absl::string_view value = member.substr(equals + 1);
  return !key.empty() && key.size() <= kMaxKeyBytes && !value.empty() &&
         value.size() <= kMaxValueBytes &&
         (absl::ascii_islower(key[0]) || absl::ascii_isdigit(key[0])) &&
         std::all_of(key.begin(), key.end(), IsKeyLetter) &&
         std::all_of(value.begin(), value.end(), IsValueLetter);
}

absl::BitGen& Random() {
  thread_local absl::BitGen random;
  return random;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(absl::string_view traceparent) {
  if (traceparent.size() < kSize || traceparent[kTraceAt - 1] != '-' ||
      traceparent[kParentAt - 1] != '-' || traceparent[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const auto field = [traceparent](size_t begin, size_t digits) {
    return ParseHex(traceparent.substr(begin, digits));
  };
  const std::optional<uint64_t> version = field(0, 2);
  const std::optional<uint64_t> high = field(kTraceAt, 16);
  const std::optional<uint64_t> low = field(kTraceAt + 16, 16);
  const std::optional<uint64_t> parent = field(kParentAt, 16);
  const std::optional<uint64_t> flags = field(kFlagsAt, 2);
  if (!version || !high || !low || !parent || !flags) return std::nullopt;
  if (*version == 0xff) return std::nullopt;
  // Only a header of a later version may have further fields.
  if (traceparent.size() > kSize &&
      (*version == 0 || traceparent[kSize] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  context.trace = {*high, *low};
  context.parent = *parent;
  context.sampled = (*flags & kSampledFlag) != 0;
  if (context.trace == TraceId() || context.parent == 0) return std::nullopt;
  return context;
}

TraceContext TraceContextOf(absl::string_view traceparent) {
  const std::optional<TraceContext> parsed = ParseTraceparent(traceparent);
  if (parsed.has_value()) return *parsed;
  TraceContext context;
  context.trace = NewTraceId();
  return context;
}

std::string KeptTracestate(absl::string_view tracestate) {
  std::vector<absl::string_view> members;
  size_t bytes = 0;  // The length of all members, each with a comma.
  for (absl::string_view member : absl::StrSplit(tracestate, ',')) {
    member = absl::StripAsciiWhitespace(member);
    if (member.empty()) continue;  // The standard allows empty members.
    if (!IsMember(member) || members.size() == kMaxMembers) return "";
    members.push_back(member);
    bytes += member.size() + 1;
  }
  // Shortens the header to 512 bytes. First removes members of more than 128
  // bytes, and then the last members. W3C Trace Context, "tracestate Limits",
  // specifies this order. `bytes` includes a comma after the last member. The
  // header does not contain this comma, so `bytes` may be 513.
  const auto is_too_long = [&bytes] { return bytes > kMaxTracestateBytes + 1; };
  for (auto member = members.begin();
       is_too_long() && member != members.end();) {
    if (member->size() > kLargeMember) {
      bytes -= member->size() + 1;
      member = members.erase(member);
    } else {
      ++member;
    }
  }
  for (; is_too_long(); members.pop_back()) bytes -= members.back().size() + 1;
  return absl::StrJoin(members, ",");
}

std::string Hex(const TraceId& id) {
  return absl::StrFormat("%016x%016x", id.high, id.low);
}

std::string Hex(SpanId id) { return absl::StrFormat("%016x", id); }

TraceId NewTraceId() { return {NewSpanId(), NewSpanId()}; }

SpanId NewSpanId() {
  SpanId id = 0;
  while (id == 0) id = Random()();  // 0 is reserved for "no span".
  return id;
}

}  // namespace sfmamba::observability
