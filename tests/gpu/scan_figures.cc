#include "tests/gpu/scan_figures.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/json.h"
#include "model/tuning/scan_search.h"

namespace sfmamba {
namespace {

tuning::ScanShape Bf16(int sequences, int length, int channels) {
  return {tuning::ScanShape::kBFloat16, channels, 8, sequences, length, false};
}

// Source: SF-Mamba (arXiv 2603.16423), the figure on B1.
constexpr struct {
  const char* name;
  int channels, length;
} kPaperShapes[] = {{"paper T stage 3", 320, 196},
                    {"paper T stage 4", 640, 49},
                    {"paper B stage 3", 512, 196},
                    {"paper B stage 4", 1024, 49}};
constexpr int kPaperBatch = 128;

constexpr const char* kGroups[] = {"model", "paper", "long", "mixed"};

void AddPaper(std::vector<ScanCase>* cases) {
  for (const auto& shape : kPaperShapes) {
    cases->push_back({ScanCase::kPaper, shape.name,
                      Bf16(kPaperBatch, shape.length, shape.channels)});
  }
}

void AddModels(std::vector<ScanCase>* cases) {
  const struct {
    const char* name;
    int channels;  // Channels of stage 3's scan.
  } kModels[] = {{"T", 160}, {"S", 192}, {"B", 256}};
  for (const int batch : {128, 32, 8, 1, 512}) {
    for (const auto& model : kModels) {
      for (const int stage : {3, 4}) {
        cases->push_back(
            {ScanCase::kModel, absl::StrCat(model.name, " stage ", stage),
             Bf16(batch, stage == 3 ? 198 : 51, model.channels * (stage - 2))});
      }
    }
  }
}

void AddLong(std::vector<ScanCase>* cases) {
  // Maps of 56 x 56 and 28 x 28, plus two tokens.
  for (const int batch : {1, 8}) {
    cases->push_back(
        {ScanCase::kLong, "T stage 3, 896 pixels", Bf16(batch, 3138, 160)});
    cases->push_back(
        {ScanCase::kLong, "T stage 4, 896 pixels", Bf16(batch, 786, 320)});
  }
}

void AddMixed(std::vector<ScanCase>* cases) {
  constexpr int kT = 160;
  ScanCase uniform{ScanCase::kMixed, "49 to 3138 tokens", Bf16(32, 3138, kT)};
  for (int i = 0; i < 32; ++i) {  // Evenly spread lengths in mixed order.
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

}  // namespace

int64_t ScanCase::tokens() const {
  if (lengths.empty()) return int64_t{shape.sequences} * shape.length;
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

std::vector<ScanCase> ScanCases() {
  std::vector<ScanCase> cases;
  AddPaper(&cases);
  AddModels(&cases);
  AddLong(&cases);
  AddMixed(&cases);
  return cases;
}

std::vector<ScanCase> ScanCases(const std::vector<std::string>& groups,
                                const std::vector<int>& batches) {
  const auto allowed = [](const auto& wanted, const auto& value) {
    return wanted.empty() ||
           std::find(wanted.begin(), wanted.end(), value) != wanted.end();
  };
  std::vector<ScanCase> cases;
  for (const ScanCase& scan : ScanCases()) {
    if (allowed(groups, kGroups[scan.group]) &&
        allowed(batches, scan.shape.sequences)) {
      cases.push_back(scan);
    }
  }
  return cases;
}

ScanCase Tiny(ScanCase scan) {
  const int sequences = scan.group == ScanCase::kPaper ? 8 : 3;
  scan.shape.sequences = std::min(scan.shape.sequences, sequences);
  scan.shape.length = 2;
  scan.shape.channels = 8;
  if (!scan.lengths.empty()) scan.lengths = {2, 1, 2};
  return scan;
}

std::vector<kernels::ScanPlan> PlansOf(const ScanCase& scan,
                                       int multiprocessors) {
  std::vector<kernels::ScanPlan> plans =
      tuning::CandidatePlans(multiprocessors, scan.shape);
  if (scan.group != ScanCase::kPaper) return plans;
  for (int rows = 1; rows < scan.shape.sequences; rows *= 2) {
    for (const int lanes : {1, 2, 4, 8}) {
      kernels::ScanPlan plan;
      plan.lanes = lanes;
      plan.rows = rows;
      plans.push_back(plan);
    }
  }
  return plans;
}

const char* NameOf(kernels::ScanPlan::Kernel kernel) {
  static constexpr const char* kNames[] = {"lane", "fold", "chunk"};
  return kNames[kernel];
}

std::string ToString(const kernels::ScanPlan& plan) {
  std::string text;
  switch (plan.kernel) {
    case kernels::ScanPlan::kLane:
      text = absl::StrCat(plan.lanes, " lanes");
      if (plan.channels_per_thread > 1) {
        text = absl::StrCat(plan.channels_per_thread, " channels a thread");
      }
      break;
    case kernels::ScanPlan::kFold:
      text = absl::StrCat(plan.items, " items");
      break;
    case kernels::ScanPlan::kChunk:
      return absl::StrCat(plan.chunks, " chunks, ", plan.lanes, " lanes");
  }
  if (plan.rows > 0) absl::StrAppend(&text, ", B1 = ", plan.rows);
  return text;
}

double ScanBound::largest() const {
  return std::max({memory, special_functions, fp32, issue});
}

ScanBound BoundOf(const ScanCase& scan, const Setting& setting) {
  const tuning::ScanShape& shape = scan.shape;
  const double tokens = scan.tokens();
  const double values = tokens * shape.channels;
  const double bytes = shape.type == tuning::ScanShape::kFloat ? 4 : 2;
  const double clocks = setting.multiprocessors * setting.clock_hz / 1e6;
  const int states = shape.states;
  // A value is one channel of one token. For each value, the kernel reads u and
  // dt and writes y. It needs 2 special functions plus one per state, and 10
  // fp32 operations plus 4 per state. A warp computes 32 values at a time with
  // 28 instructions plus 5 per state.
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
  const tuning::ScanShape& shape = scan.shape;
  const double values = double(scan.tokens()) * shape.channels;
  const double us = figure.warm.median;
  const double bytes = shape.type == tuning::ScanShape::kFloat ? 4 : 2;
  return absl::StrFormat(
      R"({"benchmark": "scan", "group": "%s", "case": %s, "shape": %s, )"
      R"("sequences": %d, "tokens": %d, )"
      R"("kernel": %s, "plan": %s, "rows": %d, "us": %.3f, "us_p10": %.3f, )"
      R"("us_p90": %.3f, "us_cold": %.3f, "ns_per_value": %.5f, )"
      R"("gb_per_s": %.1f, "exponentials_per_s": %.4g, )"
      R"("share_of_bound": %.4f, %s})",
      kGroups[scan.group], base::JsonString(scan.name),
      base::JsonString(ToString(shape)), shape.sequences, scan.tokens(),
      base::JsonString(figure.kernel), base::JsonString(figure.plan),
      figure.rows, us, figure.warm.p10, figure.warm.p90, figure.cold.median,
      us * 1e3 / values,
      (3 * values + 2.0 * shape.states * scan.tokens()) * bytes / us / 1e3,
      values * shape.states / us * 1e6, BoundOf(scan, setting).largest() / us,
      setting.Json());
}

}  // namespace sfmamba
