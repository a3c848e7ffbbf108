#include "tests/gpu/setting.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/json.h"

namespace sfmamba {

std::string Setting::Json() const {
  return absl::StrFormat(
      R"("device": %s, "multiprocessors": %d, "driver": %s, "build": %s)",
      base::JsonString(device), multiprocessors, base::JsonString(driver),
      base::JsonString(build));
}

std::string Setting::Line() const {
  return absl::StrFormat(R"({"benchmark": "setting", "clock_mhz": %.0f, )"
                         R"("copy_bytes_per_s": %.4g, %s})",
                         clock_hz / 1e6, bytes_per_second, Json());
}

std::string Clocks::Line(absl::string_view when) const {
  return absl::StrFormat(
      R"({"benchmark": "clocks", "when": "%s", "sm_mhz": %d, )"
      R"("memory_mhz": %d, "celsius": %d, "watts": %.0f, "reasons": %d})",
      when, sm_mhz, memory_mhz, celsius, watts, reasons);
}

Clocks ParseClocks(absl::string_view line, absl::string_view reasons) {
  const std::vector<absl::string_view> values = absl::StrSplit(line, ',');
  Clocks clocks;
  if (values.size() != 4) return clocks;
  const auto number = [&](int i) {
    double value = 0;
    return absl::SimpleAtod(absl::StripAsciiWhitespace(values[i]), &value)
               ? value
               : 0.0;
  };
  clocks.sm_mhz = static_cast<int>(number(0));
  clocks.memory_mhz = static_cast<int>(number(1));
  clocks.celsius = static_cast<int>(number(2));
  clocks.watts = number(3);
  uint64_t bits = 0;
  if (absl::SimpleHexAtoi(absl::StripAsciiWhitespace(reasons), &bits)) {
    clocks.reasons = bits;
  }
  return clocks;
}

}  // namespace sfmamba
