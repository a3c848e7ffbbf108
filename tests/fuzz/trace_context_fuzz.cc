// Fuzzes a traceparent and, after a line break, a tracestate. Everything that
// is read from them must be well formed.
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/observability/trace_context.h"
#include "tests/fuzz/check.h"

namespace sfmamba::observability {
namespace {

void CheckTraceparent(absl::string_view value) {
  const std::optional<TraceContext> context = ParseTraceparent(value);
  Check(TraceContextOf(value).trace != TraceId(), "there is always a trace");
  if (!context.has_value()) return;
  Check(context->trace != TraceId() && context->parent != 0, "ids are not 0");
  const std::string ids =
      absl::StrCat("-", Hex(context->trace), "-", Hex(context->parent), "-");
  Check(value.substr(2, ids.size()) == ids, "they are the value's");
  const std::string same =
      absl::StrCat("00", ids, context->sampled ? "01" : "00");
  Check(ParseTraceparent(same)->sampled == context->sampled,
        "it can be written as it was read");
}

void CheckTracestate(absl::string_view value) {
  const std::string kept = KeptTracestate(value);
  Check(kept.size() <= 512, "little is kept");
  Check(KeptTracestate(kept) == kept, "what is kept is in form");
  for (const char c : kept) Check(c >= 0x20 && c <= 0x7e, "it is plain text");
}

}  // namespace
}  // namespace sfmamba::observability

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view value = sfmamba::Input(data, size).bytes();
  const size_t line = value.find('\n');
  sfmamba::observability::CheckTraceparent(value.substr(0, line));
  if (line != value.npos) {
    sfmamba::observability::CheckTracestate(value.substr(line + 1));
  }
  return 0;
}
