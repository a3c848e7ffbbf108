#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/engine_figures.h"
#include "tests/gpu/pass_figures.h"
#include "tests/gpu/scan_figures.h"
#include "tests/gpu/setting.h"

namespace sfmamba {
namespace {

using ::testing::HasSubstr;

Setting H200() {
  return {"NVIDIA H200", 132, "580.1", "0123abcd", 1.98e9, 4.3e12, 128};
}

// ---- Setting ----

TEST(SettingTest, ReadsTheClocksOfNvidiaSmi) {
  const Clocks clocks = ParseClocks("1980, 3201, 41, 212.50\n");
  EXPECT_EQ(clocks.Text(), "SM 1980 MHz, memory 3201 MHz, 41 C, 212 W");
  EXPECT_EQ(ParseClocks("1980, [N/A], 41, [Not Supported]").memory_mhz, 0);
  EXPECT_EQ(ParseClocks("command not found").sm_mhz, 0);
}

TEST(SettingTest, StringsAreJson) {
  EXPECT_EQ(JsonString("a \"b\" \\ \n"), R"("a \"b\" \\ \u000a")");
}

// ---- Scans ----

ScanCase CaseOf(const std::string& name, int sequences) {
  for (const ScanCase& scan : ScanCases()) {
    if (scan.name == name && scan.shape.sequences == sequences) return scan;
  }
  ADD_FAILURE() << name;
  return {};
}

// The specification's table of bounds on an H200 in bf16.
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
  for (const ScanPlan& plan : PlansOf(CaseOf("paper T stage 4", 128), 132)) {
    EXPECT_TRUE(CheckScanPlan(plan).ok());
    if (plan.kernel == ScanPlan::kLane) lane.insert(plan.rows);
    if (plan.kernel == ScanPlan::kFold) fold.insert(plan.rows);
  }
  EXPECT_EQ(lane, std::set<int>({0, 1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(fold, std::set<int>({1, 2, 4, 8, 16, 32, 64, 128}));
}

ScanFigure Figure(const ScanCase& scan, const std::string& kernel, int rows,
                  double us) {
  return {scan, kernel, "4 lanes", rows, {us - 1, us, us + 1}, {us, us, us}};
}

TEST(ScanFiguresTest, JsonSaysWhatWasMeasured) {
  const std::string json =
      Json(Figure(CaseOf("T stage 3", 128), "lane", 0, 19.4), H200());
  EXPECT_THAT(json, HasSubstr(R"("case": "T stage 3")"));
  EXPECT_THAT(json, HasSubstr(R"("us": 19.400, "us_p10": 18.400)"));
  EXPECT_THAT(json, HasSubstr(R"("ns_per_value": 0.00478)"));
  EXPECT_THAT(json, HasSubstr(R"("gb_per_s": 1295.9)"));
  EXPECT_THAT(json, HasSubstr(R"("share_of_bound": 0.4998)"));
  EXPECT_THAT(json, HasSubstr(R"("device": "NVIDIA H200")"));
}

TEST(ScanFiguresTest, TablesStandBesideThePaper) {
  const ScanCase paper = CaseOf("paper T stage 4", 128);
  const std::string text =
      Markdown({Figure(CaseOf("T stage 3", 128), "lane", 0, 19.4),
                Figure(paper, "fold", 128, 40), Figure(paper, "fold", 4, 25),
                Figure(paper, "fold", 4, 20), Figure(paper, "lane", 0, 10)},
               H200());
  EXPECT_THAT(text, HasSubstr("| T stage 3 | 128 x 198 | 160 | lane | 4 lanes "
                              "| 19.40 (18.40, 20.40) | 19.40 | 0.0048 | 50 "
                              "% |"));
  EXPECT_THAT(text, HasSubstr("| the paper (its unit, A100) | 0.2380 (1.74x)"));
  EXPECT_THAT(text, HasSubstr("| fold (us) | - | - | 20.00 (2.00x) | - | - | - "
                              "| - | 40.00 (1.00x) |"));
  EXPECT_THAT(text, HasSubstr("| lane (us) | - | - | - | - | - | - | - | 10.00 "
                              "(1.00x) |"));
}

TEST(ScanFiguresTest, PlansHaveNames) {
  ScanPlan plan;
  plan.channels_per_thread = 2;
  EXPECT_EQ(ToString(plan), "2 channels a thread");
  plan.channels_per_thread = 1;
  plan.lanes = 8;
  plan.rows = 4;
  EXPECT_EQ(ToString(plan), "8 lanes, B1 = 4");
  plan.kernel = ScanPlan::kFold;
  plan.items = 7;
  EXPECT_EQ(ToString(plan), "7 items, B1 = 4");
  plan.kernel = ScanPlan::kChunk;
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
  EXPECT_THAT(Markdown({figure}, H200()),
              HasSubstr("| LayerNorm | 25344 x 320 | 41.0 | 20.00 (9.00, "
                        "21.00) | 50 % | 40.00 | 25 % |"));
}

// ---- Whole models ----

TEST(EngineCasesTest, AreValidModels) {
  for (const EngineCase& engine : EngineCases()) {
    EXPECT_EQ(Validate(engine.Config()), absl::OkStatus())
        << engine.variant << " " << engine.side;
    EXPECT_EQ(engine.Options().gpus, std::vector<int>({0}));
  }
}

TEST(EngineCasesTest, CoverWhatThePaperMeasured) {
  int with_paper = 0;
  bool largest = false;
  for (const EngineCase& engine : EngineCases()) {
    with_paper += PaperImagesPerSecond(engine) > 0;
    largest |= engine.side == 3584 && engine.club && engine.batch == 32;
  }
  EXPECT_GE(with_paper, 40);
  EXPECT_TRUE(largest);
  EngineCase known{EngineCase::kBatch, "sf_mamba_t"};
  known.batch = 128;
  EXPECT_EQ(PaperImagesPerSecond(known), 7600);
  known.batch = 2;
  EXPECT_EQ(PaperImagesPerSecond(known), 0);
}

TEST(EngineFiguresTest, TablesStandBesideThePaper) {
  EngineFigure fast;
  fast.engine = {EngineCase::kBatch, "sf_mamba_t"};
  fast.engine.batch = 128;
  fast.images_per_second = 31234.4;
  fast.ms = {3.9, 4.0, 4.1};
  fast.mib = 900;
  EngineFigure failed;
  failed.engine = {EngineCase::kResolution, "sf_mamba_t"};
  failed.engine.batch = 32;
  failed.engine.side = 3584;
  failed.note = "OOM";
  EngineFigure folded;
  folded.engine = {EngineCase::kFold, "mamba_vision_t"};
  folded.engine.batch = 128;
  folded.engine.fold_rows = 4;
  folded.images_per_second = 30000;
  const std::string text = Markdown({fast, failed, folded});
  EXPECT_THAT(text, HasSubstr("| sf_mamba_t, bf16 | - | - | - | - | - | - | - "
                              "| 31234 | - | - |"));
  EXPECT_THAT(text, HasSubstr("| sf_mamba_t, the paper (A100) | 126 | - | - | "
                              "- | - | 3962 | - | 7600 | 7801 | 8009 |"));
  EXPECT_THAT(text, HasSubstr("| sf_mamba_t | bf16 | 128 | 4.000 (3.900, "
                              "4.100) | 900 |"));
  EXPECT_THAT(text, HasSubstr("| batch 32 | - | - | - | - | OOM |"));
  EXPECT_THAT(text, HasSubstr("| batch 32, club, the paper (A100) | - | - | "
                              "427 | 105 | 27 |"));
  EXPECT_THAT(text, HasSubstr("| 4 | 30000 | 7641 |"));
}

TEST(EngineFiguresTest, JsonSaysWhatWasMeasured) {
  EngineFigure figure;
  figure.engine = {EngineCase::kBatch, "sf_mamba_t", Precision::kFloat16};
  figure.note = "a \"quoted\" error";
  const std::string json = Json(figure, H200());
  EXPECT_THAT(json, HasSubstr(R"("precision": "fp16", "batch": 1)"));
  EXPECT_THAT(json, HasSubstr(R"("note": "a \"quoted\" error")"));
  EXPECT_THAT(json, HasSubstr(R"("paper_images_per_second": 126)"));
}

}  // namespace
}  // namespace sfmamba
