#include "tests/gpu/scan_figures.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/scan_tuner.h"

namespace sfmamba {
namespace {

ScanShape Bf16(int sequences, int length, int channels) {
  return {ScanShape::kBFloat16, channels, 8, sequences, length, false};
}

// The paper's kernel by B1 = 1, 2, 4 ... 128 of a batch of 128, in its unit per
// call; the last is without folding. Source: SF-Mamba, the figure on B1.
struct PaperShape {
  const char* name;
  int channels, length;
  double times[8];
};
constexpr PaperShape kPaperShapes[] = {
    {"paper T stage 3",
     320,
     196,
     {.4223, .4440, .4602, .4541, .4532, .4648, .4954, .4825}},
    {"paper T stage 4",
     640,
     49,
     {.2380, .2349, .2334, .2383, .2539, .2431, .2587, .4147}},
    {"paper B stage 3",
     512,
     196,
     {.7038, .7380, .7195, .7092, .7129, .7240, .7818, .7636}},
    {"paper B stage 4",
     1024,
     49,
     {.3803, .3651, .3618, .3695, .3983, .3828, .4029, .6550}},
};
constexpr int kPaperBatch = 128;

void AddModels(std::vector<ScanCase>* cases) {
  const struct {
    const char* name;
    int channels;  // Of stage 3's scan.
  } kModels[] = {{"T", 160}, {"S", 192}, {"B", 256}};
  for (const auto& model : kModels) {
    for (const int stage : {3, 4}) {
      for (const int batch : {1, 8, 32, 128, 512}) {
        cases->push_back(
            {ScanCase::kModel, absl::StrCat(model.name, " stage ", stage),
             Bf16(batch, stage == 3 ? 198 : 51, model.channels * (stage - 2))});
      }
    }
  }
}

void AddMixed(std::vector<ScanCase>* cases) {
  constexpr int kT = 160;
  ScanCase uniform{ScanCase::kMixed, "49 to 3138 tokens", Bf16(32, 3138, kT)};
  for (int i = 0; i < 32; ++i) {  // Spread evenly, in no order.
    uniform.lengths.push_back(49 + (3138 - 49) * (i * 13 % 32) / 31);
  }
  uniform.shape.ragged = true;
  cases->push_back(uniform);
  ScanCase bimodal{ScanCase::kMixed, "51 or 198 tokens", Bf16(128, 198, kT)};
  for (int i = 0; i < 128; ++i) {
    bimodal.lengths.push_back(i % 2 == 0 ? 51 : 198);
  }
  bimodal.shape.ragged = true;
  cases->push_back(bimodal);
  for (const int prime : {31, 127}) {
    cases->push_back({ScanCase::kMixed, "T stage 4, a prime batch",
                      Bf16(prime, 51, 2 * kT)});
  }
}

std::string CaseTable(const std::vector<ScanFigure>& figures,
                      ScanCase::Group group, const Setting& setting) {
  std::string text =
      "| scan | sequences x tokens | channels | kernel | plan | warm us (p10, "
      "p90) | cold us | ns per (l,d) | of the bound |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const ScanFigure& figure : figures) {
    const ScanCase& scan = figure.scan;
    if (scan.group != group) continue;
    const double values = double(scan.tokens()) * scan.shape.channels;
    absl::StrAppendFormat(
        &text,
        "| %s | %d x %d%s | %d | %s | %s | %.2f (%.2f, %.2f) | %.2f | %.4f | "
        "%.0f %% |\n",
        scan.name, scan.shape.sequences, scan.shape.length,
        scan.lengths.empty() ? "" : " at most", scan.shape.channels,
        figure.kernel, figure.plan, figure.warm.median, figure.warm.p10,
        figure.warm.p90, figure.cold.median, figure.warm.median * 1e3 / values,
        100 * BoundOf(scan, setting).largest() / figure.warm.median);
  }
  return text;
}

// Of one of the paper's shapes: a kernel a row, B1 a column; the time and, in
// brackets, the speed-up over no folding.
std::string FoldTableOf(const std::vector<ScanFigure>& figures,
                        const PaperShape& shape) {
  std::string text =
      absl::StrFormat("| %s: %d x %d, %d channels, B1 =", shape.name,
                      kPaperBatch, shape.length, shape.channels);
  std::string line = "|---";
  for (int rows = 1; rows <= kPaperBatch; rows *= 2) {
    absl::StrAppend(&text, " | ", rows);
    absl::StrAppend(&line, "|---");
  }
  absl::StrAppend(&text, " |\n", line, "|\n| the paper (its unit, A100)");
  for (const double time : shape.times) {
    absl::StrAppendFormat(&text, " | %.4f (%.2fx)", time,
                          shape.times[7] / time);
  }
  absl::StrAppend(&text, " |\n");
  // The fastest plan of each kernel with each B1.
  std::map<std::string, std::map<int, double>> kernels;
  for (const ScanFigure& figure : figures) {
    if (figure.scan.name != shape.name) continue;
    const int rows = figure.rows == 0 ? kPaperBatch : figure.rows;
    double& time = kernels[figure.kernel][rows];
    time = time == 0 ? figure.warm.median : std::min(time, figure.warm.median);
  }
  for (const auto& [kernel, times] : kernels) {
    absl::StrAppend(&text, "| ", kernel, " (us)");
    const auto unfolded = times.find(kPaperBatch);
    for (int rows = 1; rows <= kPaperBatch; rows *= 2) {
      const auto time = times.find(rows);
      if (time == times.end()) {
        absl::StrAppend(&text, " | -");
      } else if (unfolded == times.end()) {
        absl::StrAppendFormat(&text, " | %.2f", time->second);
      } else {
        absl::StrAppendFormat(&text, " | %.2f (%.2fx)", time->second,
                              unfolded->second / time->second);
      }
    }
    absl::StrAppend(&text, " |\n");
  }
  return text;
}

}  // namespace

int64_t ScanCase::tokens() const {
  if (lengths.empty()) return int64_t{shape.sequences} * shape.length;
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

std::vector<ScanCase> ScanCases() {
  std::vector<ScanCase> cases;
  AddModels(&cases);
  for (const PaperShape& shape : kPaperShapes) {
    cases.push_back({ScanCase::kPaper, shape.name,
                     Bf16(kPaperBatch, shape.length, shape.channels)});
  }
  for (const int batch : {1, 8}) {  // 56 x 56 and 28 x 28, and two tokens.
    cases.push_back(
        {ScanCase::kLong, "T stage 3, 896 pixels", Bf16(batch, 3138, 160)});
    cases.push_back(
        {ScanCase::kLong, "T stage 4, 896 pixels", Bf16(batch, 786, 320)});
  }
  AddMixed(&cases);
  return cases;
}

std::vector<ScanPlan> PlansOf(const ScanCase& scan, int multiprocessors) {
  std::vector<ScanPlan> plans = CandidatePlans(multiprocessors, scan.shape);
  if (scan.group != ScanCase::kPaper) return plans;
  for (int rows = 1; rows < scan.shape.sequences; rows *= 2) {
    for (const int lanes : {1, 2, 4, 8}) {
      ScanPlan plan;
      plan.lanes = lanes;
      plan.rows = rows;
      plans.push_back(plan);
    }
  }
  return plans;
}

std::string ToString(const ScanPlan& plan) {
  std::string text;
  switch (plan.kernel) {
    case ScanPlan::kLane:
      text = absl::StrCat(plan.lanes, " lanes");
      if (plan.channels_per_thread > 1) {
        text = absl::StrCat(plan.channels_per_thread, " channels a thread");
      }
      break;
    case ScanPlan::kFold:
      text = absl::StrCat(plan.items, " items");
      break;
    case ScanPlan::kChunk:
      return absl::StrCat(plan.chunks, " chunks, ", plan.lanes, " lanes");
  }
  if (plan.rows > 0) absl::StrAppend(&text, ", B1 = ", plan.rows);
  return text;
}

double ScanBound::largest() const {
  return std::max({memory, special_functions, fp32, issue});
}

ScanBound BoundOf(const ScanCase& scan, const Setting& setting) {
  const ScanShape& shape = scan.shape;
  const double tokens = scan.tokens();
  const double values = tokens * shape.channels;
  const double bytes = shape.type == ScanShape::kFloat ? 4 : 2;
  const double clocks = setting.multiprocessors * setting.clock_hz / 1e6;
  const int states = shape.states;
  // Of a value: u, dt and y; two special functions and one a state; 10 fp32
  // operations and 4 a state; 68 instructions of a warp with 8 states.
  ScanBound bound;
  bound.memory = (3 * bytes * values + 2 * states * bytes * tokens) * 1e6 /
                 setting.bytes_per_second;
  bound.special_functions = values * (2 + states) / (16 * clocks);
  bound.fp32 = values * (10 + 4 * states) / (setting.fp32_per_clock * clocks);
  bound.issue = values / 32 * (28 + 5 * states) / (4 * clocks);
  return bound;
}

std::string Json(const ScanFigure& figure, const Setting& setting) {
  const ScanCase& scan = figure.scan;
  const ScanShape& shape = scan.shape;
  const double values = double(scan.tokens()) * shape.channels;
  const double us = figure.warm.median;
  const double bytes = shape.type == ScanShape::kFloat ? 4 : 2;
  return absl::StrFormat(
      R"({"benchmark": "scan", "case": %s, "shape": %s, "tokens": %d, )"
      R"("kernel": %s, "plan": %s, "rows": %d, "us": %.3f, "us_p10": %.3f, )"
      R"("us_p90": %.3f, "us_cold": %.3f, "ns_per_value": %.5f, )"
      R"("gb_per_s": %.1f, "exponentials_per_s": %.4g, )"
      R"("share_of_bound": %.4f, %s})",
      JsonString(scan.name), JsonString(ToString(shape)), scan.tokens(),
      JsonString(figure.kernel), JsonString(figure.plan), figure.rows, us,
      figure.warm.p10, figure.warm.p90, figure.cold.median, us * 1e3 / values,
      (3 * values + 2.0 * shape.states * scan.tokens()) * bytes / us / 1e3,
      values * shape.states / us * 1e6, BoundOf(scan, setting).largest() / us,
      setting.Json());
}

std::string Markdown(const std::vector<ScanFigure>& figures,
                     const Setting& setting) {
  std::string text = absl::StrCat(
      "### The scan of the models, bf16\n\n",
      CaseTable(figures, ScanCase::kModel, setting),
      "\n### The paper's four shapes by B1, bf16\n\nIts channels are twice the "
      "models'. In brackets: against one row a sequence.\n\n");
  for (const PaperShape& shape : kPaperShapes) {
    absl::StrAppend(&text, FoldTableOf(figures, shape), "\n");
  }
  absl::StrAppend(&text, "### Long sequences, bf16\n\n",
                  CaseTable(figures, ScanCase::kLong, setting),
                  "\n### Ragged and prime batches, bf16\n\n",
                  CaseTable(figures, ScanCase::kMixed, setting));
  return text;
}

}  // namespace sfmamba
