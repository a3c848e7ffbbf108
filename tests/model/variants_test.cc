#include <algorithm>
#include <numeric>

#include "ATen/core/Tensor.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "tests/model/deviation.h"
#include "tests/model/expected_logits.h"
#include "tests/model/expected_map.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

class VariantsTest : public testing::TestWithParam<ExpectedVariant> {};

TEST_P(VariantsTest, GivesTheSpecifiedLogits) {
  const ExpectedVariant& expected = GetParam();
  const auto model = MakeModel(*VariantConfig(expected.variant));
  const std::vector<float> logits =
      Logits(*model, DeterministicImages({2, 3, 224, 224}));
  ASSERT_EQ(logits.size(), 2000);
  for (size_t i = 0; i < expected.first.size(); ++i) {
    EXPECT_NEAR(logits[i], expected.first[i], 1e-4) << i;
  }
  for (size_t i = 0; i < expected.second.size(); ++i) {
    EXPECT_NEAR(logits[1000 + i], expected.second[i], 1e-4) << i;
  }
  EXPECT_NEAR(std::accumulate(logits.begin(), logits.end(), 0.0), expected.sum,
              0.02);
  for (const auto begin : {logits.begin(), logits.begin() + 1000}) {
    EXPECT_EQ(std::max_element(begin, begin + 1000) - begin, expected.argmax);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariantsTest,
                         testing::ValuesIn(ExpectedVariants()),
                         [](const auto& info) {
                           return std::string(info.param.variant);
                         });

ModelConfig WithoutTokens(ModelConfig config) {
  config.backbone.tokens = Tokens::kNone;
  return config;
}

class StageMapsTest : public testing::TestWithParam<bool> {
 protected:
  const ops::Implementation& implementation_ = CpuOrReference(GetParam());
};

TEST_P(StageMapsTest, SmallModel) {
  const at::Tensor images =
      DeterministicImages({2, 3, kSmallHeight, kSmallWidth});
  const auto plain =
      StageMaps(WithoutTokens(SmallModel()), images, implementation_);
  const auto swapped = StageMaps(SmallModel(), images, implementation_);
  for (const auto& maps : {plain, swapped}) {
    ASSERT_EQ(maps.size(), 4);
    ExpectMap(maps[0],
              {{2, 16, 24, 20}, 2214.257688, 3170.623612, 0.169727, 0.583861});
    ExpectMap(maps[1],
              {{2, 32, 12, 10}, 592.223106, 2558.258907, 0.221262, 0.582012});
  }
  ExpectMap(plain[2],
            {{2, 64, 6, 5}, -95.818827, 4046.798449, -2.136878, -0.139981});
  ExpectMap(plain[3],
            {{2, 128, 3, 3}, 32.611892, 2602.577557, 1.761417, 0.083403});
  ExpectMap(swapped[2],
            {{2, 64, 6, 5}, -54.926208, 4091.645606, -2.197968, -0.192379});
  ExpectMap(swapped[3],
            {{2, 128, 3, 3}, 70.022504, 2708.981703, 1.508602, -0.583764});
}

TEST_P(StageMapsTest, Tiny) {
  const at::Tensor images = DeterministicImages({2, 3, 224, 224});
  const auto plain =
      StageMaps(*VariantConfig("mamba_vision_t"), images, implementation_);
  const auto swapped =
      StageMaps(*VariantConfig("sf_mamba_t"), images, implementation_);
  for (const auto& maps : {plain, swapped}) {
    ASSERT_EQ(maps.size(), 4);
    ExpectMap(maps[0],
              {{2, 80, 56, 56}, 65202.6991, 113786.0190, 0.026287, 0.413308});
    ExpectMap(maps[1],
              {{2, 160, 28, 28}, -8912.1071, 102041.3930, 0.262286, -0.158546});
  }
  ExpectMap(plain[2],
            {{2, 320, 14, 14}, -16482.7187, 275806.4885, -0.984563, 1.316467});
  ExpectMap(plain[3],
            {{2, 640, 7, 7}, 394.2924, 164820.2476, -1.747668, -0.331937});
  ExpectMap(swapped[2],
            {{2, 320, 14, 14}, -16495.6072, 275858.4248, 1.281832, -0.813909});
  ExpectMap(swapped[3],
            {{2, 640, 7, 7}, 409.0227, 164933.1106, -1.733028, -1.270623});
}

INSTANTIATE_TEST_SUITE_P(Forms, StageMapsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

TEST(WindowModeTest, AFullWindowIsTheFixedOneOfTheSameSize) {
  // With 64 x 64 pixels, the maps have 4 x 4 tokens in stage 3 and 2 x 2 in
  // stage 4. This is the size of the small model's windows.
  const at::Tensor images = DeterministicImages({1, 3, 64, 64});
  ModelConfig full = SmallModel();
  full.backbone.window_mode = WindowMode::kFull;
  EXPECT_EQ(LogitsOf(full, images, Cpu()),
            LogitsOf(SmallModel(), images, Cpu()));
}

TEST(WindowModeTest, AFullWindowIsCutForAttentionWhereItIsLargerOnly) {
  ModelConfig full = SmallModel();
  full.backbone.window_mode = WindowMode::kFull;
  ModelConfig cut = full;
  cut.backbone.attention_windows = {4, 4};
  const at::Tensor small = DeterministicImages({1, 3, 64, 64});
  EXPECT_EQ(LogitsOf(cut, small, Cpu()), LogitsOf(full, small, Cpu()));
  // Both models pad 6 x 5 tokens to 8 x 8 and cut them into four windows.
  const at::Tensor large =
      DeterministicImages({1, 3, kSmallHeight, kSmallWidth});
  const std::vector<float> fused = LogitsOf(cut, large, Cpu());
  EXPECT_LE(LargestDifference(fused, LogitsOf(cut, large, Reference())), 1e-4);
  EXPECT_GE(LargestDifference(fused, LogitsOf(full, large, Cpu())), 1e-3);
}

// Compares bf16 or int8 with fp32. This is slow if the CPU has no instructions
// for the type.
void ExpectClose(const ModelConfig& config, const at::Tensor& image,
                 Precision precision = Precision::kBFloat16,
                 double largest = 0.05) {
  const Deviation deviation = DeviationOf(
      LogitsOf(config, image, Cpu(precision)), LogitsOf(config, image, Cpu()));
  EXPECT_GE(deviation.cosine, 0.9995);
  EXPECT_LE(deviation.largest, largest);
  EXPECT_GT(deviation.largest, 1e-4);  // Shows that the precision was lower.
  EXPECT_TRUE(deviation.same_argmax);
}

TEST(HalfPrecisionTest, SmallModelStaysClose) {
  const at::Tensor images =
      DeterministicImages({2, 3, kSmallHeight, kSmallWidth});
  for (int i = 0; i < 2; ++i) {
    ExpectClose(SmallModel(), images.narrow(0, i, 1));
  }
}

TEST(Int8Test, TinyStaysClose) {
  ExpectClose(*VariantConfig("sf_mamba_t"),
              DeterministicImages({1, 3, 224, 224}), Precision::kInt8, 0.08);
}

TEST(HalfPrecisionTest, TinyStaysClose) {
  ExpectClose(*VariantConfig("sf_mamba_t"),
              DeterministicImages({1, 3, 224, 224}));
}

}  // namespace
}  // namespace sfmamba::model
