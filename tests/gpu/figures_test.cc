#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/tuning/scan_plan_table.h"
#include "tests/gpu/engine_figures.h"
#include "tests/gpu/pass_figures.h"
#include "tests/gpu/scan_figures.h"
#include "tests/gpu/setting.h"
#include "tests/gpu/tune_figures.h"

namespace sfmamba {
namespace {

using ::testing::HasSubstr;

Setting H200() {
  return {"NVIDIA H200", 132, "580.1", "0123abcd", 1.98e9, 4.3e12, 128};
}

// ---- Setting ----

TEST(SettingTest, ReadsTheClocksOfNvidiaSmi) {
  const Clocks clocks =
      ParseClocks("1980, 3201, 41, 212.50\n", "0x0000000000000024\n");
  EXPECT_EQ(clocks.Line("after"),
            R"({"benchmark": "clocks", "when": "after", "sm_mhz": 1980, )"
            R"("memory_mhz": 3201, "celsius": 41, "watts": 212, )"
            R"("reasons": 36})");
  EXPECT_EQ(ParseClocks("1980, [N/A], 41, [Not Supported]", "").memory_mhz, 0);
  EXPECT_EQ(ParseClocks("1980, 3201, 41, 212", "[N/A]").reasons, 0);
  EXPECT_EQ(ParseClocks("command not found", "").sm_mhz, 0);
}

TEST(SettingTest, ALineHasAllOfIt) {
  EXPECT_EQ(H200().Line(),
            R"({"benchmark": "setting", "clock_mhz": 1980, )"
            R"("copy_bytes_per_s": 4.3e+12, "device": "NVIDIA H200", )"
            R"("multiprocessors": 132, "driver": "580.1", )"
            R"("build": "0123abcd"})");
}

// ---- Scans ----

ScanCase CaseOf(const std::string& name, int sequences) {
  for (const ScanCase& scan : ScanCases()) {
    if (scan.name == name && scan.shape.sequences == sequences) return scan;
  }
  ADD_FAILURE() << name;
  return {};
}

// The bounds on an H200 in bf16, in microseconds.
TEST(ScanBoundTest, IsTheSpecifiedOne) {
  const struct {
    const char* name;
    double memory, special_functions, fp32, issue;
  } kExpected[] = {{"T stage 3", 5.8, 9.7, 5.1, 8.2},
                   {"T stage 4", 3.0, 5.0, 2.6, 4.2},
                   {"S stage 3", 7.0, 11.6, 6.1, 9.9},
                   {"B stage 4", 4.7, 8.0, 4.2, 6.8},
                   {"paper T stage 3", 11.4, 19.2, 10.1, 16.3}};
  for (const auto& expected : kExpected) {
    const ScanBound bound = BoundOf(CaseOf(expected.name, 128), H200());
    EXPECT_NEAR(bound.memory, expected.memory, 0.06) << expected.name;
    EXPECT_NEAR(bound.special_functions, expected.special_functions, 0.06)
        << expected.name;
    EXPECT_NEAR(bound.fp32, expected.fp32, 0.06) << expected.name;
    EXPECT_NEAR(bound.issue, expected.issue, 0.06) << expected.name;
    EXPECT_EQ(bound.largest(), bound.special_functions);
  }
}

TEST(ScanCasesTest, AreThoseOfTheSpecification) {
  int by_group[4] = {};
  for (const ScanCase& scan : ScanCases()) {
    ++by_group[scan.group];
    EXPECT_TRUE(scan.lengths.empty() ||
                scan.lengths.size() == scan.shape.sequences);
    EXPECT_EQ(scan.shape.ragged, !scan.lengths.empty());
    for (const int length : scan.lengths) {
      EXPECT_GE(length, 1);
      EXPECT_LE(length, scan.shape.length);
    }
  }
  EXPECT_EQ(by_group[ScanCase::kModel], 3 * 2 * 5);
  EXPECT_EQ(by_group[ScanCase::kPaper], 4);
  EXPECT_EQ(by_group[ScanCase::kLong], 4);
  EXPECT_EQ(by_group[ScanCase::kMixed], 4);
  EXPECT_EQ(CaseOf("51 or 198 tokens", 128).tokens(), 64 * (51 + 198));
  EXPECT_EQ(CaseOf("T stage 3", 128).tokens(), 128 * 198);
  EXPECT_EQ(CaseOf("B stage 4", 8).shape.channels, 512);
}

TEST(ScanCasesTest, ThePapersShapesSweepEachB1) {
  std::set<int> lane, fold;
  for (const kernels::ScanPlan& plan :
       PlansOf(CaseOf("paper T stage 4", 128), 132)) {
    EXPECT_TRUE(kernels::CheckScanPlan(plan).ok());
    if (plan.kernel == kernels::ScanPlan::kLane) lane.insert(plan.rows);
    if (plan.kernel == kernels::ScanPlan::kFold) fold.insert(plan.rows);
  }
  EXPECT_EQ(lane, std::set<int>({0, 1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(fold, std::set<int>({1, 2, 4, 8, 16, 32, 64, 128}));
}

TEST(ScanCasesTest, AreFiltered) {
  EXPECT_EQ(ScanCases({}, {}).size(), ScanCases().size());
  EXPECT_EQ(ScanCases({"paper"}, {}).size(), 4);
  EXPECT_EQ(ScanCases({"model"}, {128}).size(), 6);
  EXPECT_EQ(ScanCases({"model", "long"}, {8}).size(), 6 + 2);
}

TEST(ScanCasesTest, TinyOnesKeepTheirNamesAndKinds) {
  for (const ScanCase& scan : ScanCases()) {
    const ScanCase tiny = Tiny(scan);
    EXPECT_EQ(tiny.name, scan.name);
    EXPECT_LE(tiny.tokens(), 256);
    EXPECT_EQ(tiny.lengths.empty(), scan.lengths.empty());
    if (!tiny.lengths.empty()) {
      EXPECT_EQ(tiny.lengths.size(), tiny.shape.sequences);
    }
  }
}

ScanFigure Figure(const ScanCase& scan, const std::string& kernel, int rows,
                  double us) {
  return {scan, kernel, "4 lanes", rows, {us - 1, us, us + 1}, {us, us, us}};
}

TEST(ScanFiguresTest, JsonSaysWhatWasMeasured) {
  const std::string json =
      Json(Figure(CaseOf("T stage 3", 128), "lane", 0, 19.4), H200());
  EXPECT_THAT(json, HasSubstr(R"("group": "model", "case": "T stage 3")"));
  EXPECT_THAT(json, HasSubstr(R"("us": 19.400, "us_p10": 18.400)"));
  EXPECT_THAT(json, HasSubstr(R"("ns_per_value": 0.00478)"));
  EXPECT_THAT(json, HasSubstr(R"("gb_per_s": 1295.9)"));
  EXPECT_THAT(json, HasSubstr(R"("share_of_bound": 0.4998)"));
  EXPECT_THAT(json, HasSubstr(R"("device": "NVIDIA H200")"));
}

TEST(ScanFiguresTest, PlansHaveNames) {
  kernels::ScanPlan plan;
  plan.channels_per_thread = 2;
  EXPECT_EQ(ToString(plan), "2 channels a thread");
  plan.channels_per_thread = 1;
  plan.lanes = 8;
  plan.rows = 4;
  EXPECT_EQ(ToString(plan), "8 lanes, B1 = 4");
  plan.kernel = kernels::ScanPlan::kFold;
  plan.items = 7;
  EXPECT_EQ(ToString(plan), "7 items, B1 = 4");
  plan.kernel = kernels::ScanPlan::kChunk;
  plan.chunks = 64;
  EXPECT_EQ(ToString(plan), "64 chunks, 8 lanes");
}

// ---- Passes ----

TEST(PassFiguresTest, CompareWithACopy) {
  const PassFigure figure{"LayerNorm", 25344,       320,
                          43e6,        {9, 20, 21}, {39, 40, 41}};
  const std::string json = Json(figure, H200());
  EXPECT_THAT(json, HasSubstr(R"("kernel": "LayerNorm", "tokens": 25344)"));
  EXPECT_THAT(json, HasSubstr(R"("share_of_copy": 0.5000)"));
  EXPECT_THAT(json, HasSubstr(R"("us_cold": 40.000)"));
}

// ---- Tuning ----

TEST(TuneRecorderTest, SaysOfEachShapeWhatTuningGains) {
  const tuning::ScanShape first = CaseOf("T stage 3", 128).shape;
  const tuning::ScanShape second = CaseOf("T stage 4", 128).shape;
  kernels::ScanPlan folded;
  folded.rows = 4;
  kernels::ScanPlan plain;
  plain.lanes = 8;
  std::vector<std::string> lines;
  TuneRecorder recorder(
      H200(),
      [](const tuning::ScanShape&,
         const kernels::ScanPlan& plan) -> absl::StatusOr<double> {
        if (plan.kernel == kernels::ScanPlan::kFold) {
          return absl::InvalidArgumentError("not this one");
        }
        return plan.rows > 0 ? 10 : plan.lanes == 8 ? 16 : 20;
      },
      [&](const std::string& line) { lines.push_back(line); });
  kernels::ScanPlan refused;
  refused.kernel = kernels::ScanPlan::kFold;
  EXPECT_TRUE(recorder.Measure(first, kernels::ScanPlan()).ok());
  EXPECT_FALSE(recorder.Measure(first, refused).ok());
  EXPECT_TRUE(recorder.Measure(first, folded).ok());
  EXPECT_TRUE(recorder.Measure(first, plain).ok());
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(recorder.Measure(second, kernels::ScanPlan()).ok());
  ASSERT_EQ(lines.size(), 1);
  recorder.Finish();
  recorder.Finish();
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(
      lines[0],
      HasSubstr(R"("shape": "bf16 160 channels 8 states 128 x 198", )"
                R"("kernel": "lane", "plan": "1 lanes, B1 = 4", "us": 10.000, )"
                R"("default_plan": "lane, 1 lanes", "default_us": 20.000, )"
                R"("unfolded_us": 16.000, "plans": 3)"));
  EXPECT_THAT(lines[1], HasSubstr("128 x 51"));
}

TEST(ShapesToTuneTest, BeginWithThePublishedSizesInBf16) {
  const std::vector<tuning::ScanShape> shapes = ShapesToTune();
  ASSERT_GT(shapes.size(), 60);
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(shapes[i].type, tuning::ScanShape::kBFloat16);
    EXPECT_LE(shapes[i].length, 198);
  }
}

// ---- Whole models ----

TEST(EngineCasesTest, AreValidModels) {
  for (const EngineCase& engine : EngineCases()) {
    for (const bool tiny : {false, true}) {
      EXPECT_EQ(model::Validate(engine.Config(tiny)), absl::OkStatus())
          << engine.variant << " " << engine.side;
    }
  }
}

TEST(EngineCasesTest, TheMostValuableComeFirst) {
  const EngineCase first = EngineCases()[0];
  EXPECT_EQ(first.variant, "sf_mamba_t");
  EXPECT_EQ(first.precision, model::Precision::kBFloat16);
  EXPECT_EQ(first.batch, 128);
}

TEST(EngineCasesTest, AreFiltered) {
  EngineFilter filter;
  filter.groups = {"batch"};
  filter.variants = {"sf_mamba_t", "sf_mamba_b"};
  filter.precisions = {"bf16"};
  filter.batches = {128};
  filter.slots = {2, 3};
  std::vector<std::string> found;
  for (const EngineCase& engine : EngineCases(filter)) {
    found.push_back(absl::StrCat(engine.variant, " ", engine.slots));
  }
  EXPECT_EQ(found, std::vector<std::string>({"sf_mamba_t 2", "sf_mamba_b 2",
                                             "sf_mamba_t 3", "sf_mamba_b 3"}));
  filter = {};
  filter.groups = {"fold"};
  EXPECT_EQ(EngineCases(filter).size(), 4);
  filter.groups = {"resolution"};
  EXPECT_EQ(EngineCases(filter).size(), 2 * (5 + 3));
}

TEST(EngineCasesTest, ThoseOfAModelAreNeighbours) {
  const std::vector<EngineCase> cases = EngineCases();
  for (size_t i = 0; i < cases.size(); ++i) {
    for (size_t k = i + 2; k < cases.size(); ++k) {
      EXPECT_TRUE(!SameModel(cases[i], cases[k]) ||
                  SameModel(cases[i], cases[k - 1]))
          << i << " " << k;
    }
  }
}

TEST(EngineCasesTest, OptionsKeepTheDevices) {
  EngineCase engine{EngineCase::kFold, "mamba_vision_t"};
  engine.fold_rows = 4;
  engine.slots = 3;
  model::ModelOptions device;
  device.gpus = {0};
  device.scan_plans = std::make_shared<tuning::ScanPlanTable>(
      tuning::ScanDevice{"NVIDIA H200", 132, "0123abcd"});
  const model::ModelOptions options = engine.Options(device);
  EXPECT_EQ(options.gpus, std::vector<int>({0}));
  EXPECT_EQ(options.scan_plans, device.scan_plans);
  EXPECT_EQ(options.fold_rows, 4);
  EXPECT_EQ(options.slots_per_gpu, 3);
  engine.batch = 128;
  EXPECT_EQ(engine.Options(device, /*tiny=*/true).fold_rows, 2);
  EXPECT_EQ(engine.RunBatch(/*tiny=*/true), 2);
  EXPECT_EQ(engine.RunBatch(/*tiny=*/false), 128);
}

TEST(EngineCasesTest, OneIsParsed) {
  const auto engine = ParseEngineCase("sf_mamba_b,fp16,32");
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(engine->variant, "sf_mamba_b");
  EXPECT_EQ(engine->precision, model::Precision::kFloat16);
  EXPECT_EQ(engine->batch, 32);
  for (const char* wrong : {"", "sf_mamba_b", "sf_mamba_b,fp16,0",
                            "sf_mamba_b,fp8,1", "no_mamba,bf16,1"}) {
    EXPECT_FALSE(ParseEngineCase(wrong).ok()) << wrong;
  }
}

TEST(EngineFiguresTest, JsonSaysWhatWasMeasured) {
  EngineFigure figure;
  figure.engine = {EngineCase::kBatch, "sf_mamba_t", model::Precision::kFloat16,
                   100};
  figure.images_per_second = 25000;
  figure.ms = {4.4, 4.5, 4.6};
  figure.device_ms = {3.9, 4.0, 4.1};
  figure.sustained_ms = 4.25;
  figure.sustained_clocks.sm_mhz = 1680;
  figure.overlapped_images_per_second = 30000;
  figure.padded_images = 104;
  figure.round = 3;
  figure.clocks.sm_mhz = 1755;
  figure.clocks.watts = 681;
  figure.note = "a \"quoted\" error";
  figure.uncaptured = "INTERNAL: no";
  const std::string json = Json(figure, H200());
  EXPECT_THAT(json, HasSubstr(R"("precision": "fp16", "batch": 100)"));
  EXPECT_THAT(json, HasSubstr(R"("slots": 2, "tuned": false)"));
  EXPECT_THAT(json, HasSubstr(R"("ms": 4.5000, "ms_p10": 4.4000)"));
  EXPECT_THAT(json, HasSubstr(R"("device_ms": 4.0000)"));
  EXPECT_THAT(json, HasSubstr(R"("sustained_ms": 4.2500, )"
                              R"("sustained_mhz": 1680)"));
  EXPECT_THAT(json, HasSubstr(R"("overlapped_images_per_second": 30000.00)"));
  EXPECT_THAT(json, HasSubstr(R"("padded_images": 104)"));
  EXPECT_THAT(json, HasSubstr(R"("round": 3, "sm_mhz": 1755, "watts": 681)"));
  EXPECT_THAT(json, HasSubstr(R"("note": "a \"quoted\" error", )"
                              R"("uncaptured": "INTERNAL: no")"));
}

}  // namespace
}  // namespace sfmamba
