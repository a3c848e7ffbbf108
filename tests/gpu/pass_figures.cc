#include "tests/gpu/pass_figures.h"

#include "absl/strings/str_format.h"
#include "base/json.h"

namespace sfmamba {
namespace {

double ShareOfCopy(const PassFigure& figure, double us,
                   const Setting& setting) {
  return figure.bytes / us * 1e6 / setting.bytes_per_second;
}

}  // namespace

std::string Json(const PassFigure& figure, const Setting& setting) {
  return absl::StrFormat(
      R"({"benchmark": "pass", "kernel": %s, "tokens": %d, "channels": %d, )"
      R"("mib": %.1f, "us": %.3f, "us_p10": %.3f, "us_p90": %.3f, )"
      R"("us_cold": %.3f, "share_of_copy": %.4f, )"
      R"("share_of_copy_cold": %.4f, %s})",
      base::JsonString(figure.kernel), figure.tokens, figure.channels,
      figure.bytes / (1 << 20), figure.warm.median, figure.warm.p10,
      figure.warm.p90, figure.cold.median,
      ShareOfCopy(figure, figure.warm.median, setting),
      ShareOfCopy(figure, figure.cold.median, setting), setting.Json());
}

}  // namespace sfmamba
