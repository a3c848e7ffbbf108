#include "tests/model/launch_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sfmamba::model {
namespace {

constexpr double kBytesPerUs = 3.65e6, kAttentionBytesPerUs = 1.2e6;
constexpr double kProductFlopsPerUs = 600e6;
// An H200 has 132 multiprocessors, each with 16 special-function units and 128
// multiply-add units, at 1980 MHz.
constexpr double kSpecialsPerUs = 132 * 16 * 1980.0;
constexpr double kFp32FlopsPerUs = 132 * 128 * 2 * 1980.0;
constexpr double kScanOverBound = 1.6, kStemOverBound = 1.6;
constexpr double kGapUs = 1.2;

// Convolutions with more channels fill the tensor cores' tiles better, so they
// are faster.
double ConvolutionFlopsPerUs(int channels) {
  static const auto& rates =
      *new std::map<int, double>{{0, 280e6},   {96, 360e6},  {128, 448e6},
                                 {160, 440e6}, {192, 490e6}, {256, 550e6}};
  return std::prev(rates.upper_bound(channels))->second;
}

}  // namespace

double ModelledMicroseconds(const Launch& launch) {
  const double memory = launch.bytes / kBytesPerUs;
  switch (launch.kind) {
    case LaunchKind::kGemm:
      return kGapUs + std::max(memory, launch.flops / kProductFlopsPerUs);
    case LaunchKind::kConvolution:
      return kGapUs + std::max(memory, launch.flops / ConvolutionFlopsPerUs(
                                                          launch.channels));
    case LaunchKind::kAttention:
      return kGapUs + launch.bytes / kAttentionBytesPerUs;
    case LaunchKind::kScan:
      return kGapUs + std::max(memory, kScanOverBound * launch.specials /
                                           kSpecialsPerUs);
    case LaunchKind::kStem:
      return kGapUs +
             std::max(memory, kStemOverBound * launch.flops / kFp32FlopsPerUs);
    case LaunchKind::kOnePass:
      return kGapUs + memory;
  }
  return 0;  // Never reached.
}

double ModelledMilliseconds(const std::vector<Launch>& launches) {
  double us = 0;
  for (const Launch& launch : launches) us += ModelledMicroseconds(launch);
  return us / 1e3;
}

std::string LaunchTable(const std::vector<Launch>& launches) {
  struct Row {
    int launches = 0;
    double flops = 0, bytes = 0, us = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  Row sum;
  for (const Launch& launch : launches) {
    if (rows.count(launch.group) == 0) order.push_back(launch.group);
    for (Row* row : {&rows[launch.group], &sum}) {
      ++row->launches;
      row->flops += launch.flops;
      row->bytes += launch.bytes;
      row->us += ModelledMicroseconds(launch);
    }
  }
  std::string text =
      "| what | launches | GFLOP | MB | us |\n|---|---|---|---|---|\n";
  const auto append = [&](const std::string& name, const Row& row) {
    absl::StrAppendFormat(&text, "| %s | %d | %.0f | %.0f | %.0f |\n", name,
                          row.launches, row.flops / 1e9, row.bytes / 1e6,
                          row.us);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const std::string& a, const std::string& b) {
                     return rows[a].us > rows[b].us;
                   });
  for (const std::string& group : order) append(group, rows[group]);
  append("**all**", sum);
  return text;
}

}  // namespace sfmamba::model
