// A traceparent: its trace id is empty or well formed, whatever it is.
#include <cstdint>
#include <string>

#include "server/observability/trace_context.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using sfmamba::Check;
  const absl::string_view value = sfmamba::Input(data, size).bytes();
  const std::string id = sfmamba::observability::TraceIdOf(value);
  if (id.empty()) return 0;
  Check(id.size() == 32, "an id has 32 digits");
  Check(id.find_first_not_of("0123456789abcdef") == id.npos, "of base 16");
  Check(id.find_first_not_of('0') != id.npos, "not all of them zeros");
  Check(value.substr(0, 3 + id.size()) == "00-" + id, "it is the value's");
  return 0;
}
