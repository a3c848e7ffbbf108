#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "model/config.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

constexpr int kClasses = 10;

// A scan mode and the small model's expected logits for two images in this
// mode, computed in fp64. The last mode of Ablations() has no expected logits,
// so ExpectedAblationTest skips it. Source: docs/network.md, "Other forms".
struct Ablation {
  const char* name;
  ScanMode scan;
  std::vector<float> logits;
};

std::ostream& operator<<(std::ostream& out, const Ablation& ablation) {
  return out << ablation.name;
}

std::string NameOf(const testing::TestParamInfo<Ablation>& info) {
  return info.param.name;
}

const std::vector<Ablation>& Ablations() {
  static const auto& ablations = *new std::vector<Ablation>{
      {"Series",
       ScanMode::kSeries,
       {-1.271499f, 1.120570f,  1.655481f, -2.267916f, 0.199317f,
        0.068298f,  -0.143834f, 0.826663f, 0.270207f,  0.384457f,
        -1.071519f, 1.241704f,  1.617448f, -2.150220f, 0.440345f,
        0.070081f,  0.034844f,  0.624440f, -0.052055f, 0.509319f}},
      {"SeriesGap",
       ScanMode::kSeriesGap,
       {-1.150600f, 1.286850f,  1.753968f, -2.325738f, 0.233428f,
        0.022501f,  -0.081834f, 0.689415f, 0.370595f,  0.373703f,
        -0.915349f, 1.361212f,  1.690613f, -2.192928f, 0.531445f,
        0.050426f,  0.025177f,  0.451653f, 0.075849f,  0.452284f}},
      {"ParallelCat",
       ScanMode::kParallelCat,
       {-1.308197f, 1.185575f,  1.596488f, -2.347648f, 0.199267f,
        0.248377f,  -0.207213f, 0.755050f, 0.174925f,  0.300757f,
        -1.101917f, 1.163251f,  1.612479f, -2.124751f, 0.495554f,
        0.158098f,  0.009630f,  0.537303f, -0.149235f, 0.435037f}},
      {"ParallelAdd",
       ScanMode::kParallelAdd,
       {-1.409588f, 0.617584f, 1.306353f, -1.564097f, 0.161490f,
        0.000332f,  0.006264f, 1.215743f, 0.303662f,  0.536295f,
        -1.438013f, 0.624430f, 1.635379f, -1.668797f, 0.371949f,
        -0.472630f, 0.166065f, 1.194463f, 0.133328f,  0.536085f}},
      {"ParallelAddVim", ScanMode::kParallelAddVim, {}},
  };
  return ablations;
}

class AblationTest : public testing::TestWithParam<Ablation> {
 protected:
  AblationTest() {
    config_.backbone.tokens = Tokens::kNone;
    config_.backbone.scan = GetParam().scan;
  }

  std::vector<float> LogitsOf(const ModelOptions& options,
                              const at::Tensor& images) {
    return Logits(*MakeModel(config_, options), images);
  }
  static at::Tensor Images(int count) {
    return DeterministicImages({count, 3, kSmallHeight, kSmallWidth});
  }

  ModelConfig config_ = SmallModel();
};

using ExpectedAblationTest = AblationTest;

TEST_P(ExpectedAblationTest, LogitsHoldWithEveryFold) {
  for (const int fold_rows : {0, 1, 2, 4, 8}) {
    const auto logits = LogitsOf({/*reference=*/false, fold_rows}, Images(2));
    EXPECT_LE(LargestDifference(logits, GetParam().logits), 1e-4) << fold_rows;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExpectedAblationTest,
                         testing::ValuesIn(Ablations().begin(),
                                           Ablations().end() - 1),
                         NameOf);

TEST_P(AblationTest, TheReferenceAgreesWithEveryFold) {
  const std::vector<float> fused = LogitsOf({}, Images(2));
  for (const int fold_rows : {0, 1, 4}) {
    const auto plain = LogitsOf({/*reference=*/true, fold_rows}, Images(2));
    EXPECT_LE(LargestDifference(plain, fused), 2e-5) << fold_rows;
  }
}

TEST_P(AblationTest, FoldingChangesRoundingOnly) {
  const std::vector<float> unfolded = LogitsOf({}, Images(2));
  for (const int fold_rows : {1, 2, 4, 8}) {
    const auto folded = LogitsOf({/*reference=*/false, fold_rows}, Images(2));
    EXPECT_LE(LargestDifference(folded, unfolded), 1e-5) << fold_rows;
  }
}

TEST_P(AblationTest, APoisonedImageLeavesItsBatchMatesAlone) {
  at::Tensor images = Images(3);
  at::Tensor poisoned = images.clone();
  poisoned[1].fill_(std::numeric_limits<float>::quiet_NaN());
  for (const int fold_rows : {0, 1, 4}) {
    const auto clean = LogitsOf({/*reference=*/false, fold_rows}, images);
    const auto logits = LogitsOf({/*reference=*/false, fold_rows}, poisoned);
    for (int k = 0; k < kClasses; ++k) {
      EXPECT_EQ(logits[k], clean[k]);
      EXPECT_TRUE(std::isnan(logits[kClasses + k]));
      EXPECT_EQ(logits[2 * kClasses + k], clean[2 * kClasses + k]);
    }
  }
}

TEST_P(AblationTest, HalfPrecisionStaysClose) {
  const std::vector<float> full = model::LogitsOf(config_, Images(1), Cpu());
  const double difference = LargestDifference(
      model::LogitsOf(config_, Images(1), Cpu(Precision::kBFloat16)), full);
  EXPECT_LE(difference, 0.06);
  EXPECT_GT(difference, 1e-4);  // Shows that bf16 was used.
}

INSTANTIATE_TEST_SUITE_P(All, AblationTest, testing::ValuesIn(Ablations()),
                         NameOf);

}  // namespace
}  // namespace sfmamba::model
