#include "tests/gpu/pass_figures.h"

#include "absl/strings/str_format.h"

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
      JsonString(figure.kernel), figure.tokens, figure.channels,
      figure.bytes / (1 << 20), figure.warm.median, figure.warm.p10,
      figure.warm.p90, figure.cold.median,
      ShareOfCopy(figure, figure.warm.median, setting),
      ShareOfCopy(figure, figure.cold.median, setting), setting.Json());
}

std::string Markdown(const std::vector<PassFigure>& figures,
                     const Setting& setting) {
  std::string text =
      "### Passes over memory, bf16\n\n"
      "| kernel | tokens x channels | MiB | warm us (p10, p90) | of a copy | "
      "cold us | of a copy |\n|---|---|---|---|---|---|---|\n";
  for (const PassFigure& figure : figures) {
    absl::StrAppendFormat(
        &text,
        "| %s | %d x %d | %.1f | %.2f (%.2f, %.2f) | %.0f %% | %.2f | %.0f %% "
        "|\n",
        figure.kernel, figure.tokens, figure.channels, figure.bytes / (1 << 20),
        figure.warm.median, figure.warm.p10, figure.warm.p90,
        100 * ShareOfCopy(figure, figure.warm.median, setting),
        figure.cold.median,
        100 * ShareOfCopy(figure, figure.cold.median, setting));
  }
  return text;
}

}  // namespace sfmamba
