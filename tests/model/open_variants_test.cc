// Compares variants that have public weights with the original code's logits in
// fp64. The variants have their usual sizes and deterministic parameters.
#include <algorithm>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

struct Expected {
  const char* variant;
  int height, width;
  std::vector<float> first;  // The logits of the first classes.
  double sum;
  int argmax;
};

std::ostream& operator<<(std::ostream& out, const Expected& expected) {
  return out << expected.variant << " " << expected.height;
}

class OpenVariantsTest : public testing::TestWithParam<Expected> {};

TEST_P(OpenVariantsTest, LogitsAreThoseOfTheOriginalCode) {
  const Expected& expected = GetParam();
  const ModelConfig config = *VariantConfig(expected.variant);
  const std::vector<float> logits = LogitsOf(
      config, DeterministicImages({1, 3, expected.height, expected.width}),
      Cpu());
  ASSERT_EQ(logits.size(), 1000);
  // VMamba's fp32 is closer to fp64 than that of other models.
  const bool is_vmamba = config.backbone.architecture == Architecture::kVMamba;
  for (size_t i = 0; i < expected.first.size(); ++i) {
    EXPECT_NEAR(logits[i], expected.first[i], is_vmamba ? 2e-5 : 1e-4) << i;
  }
  EXPECT_NEAR(std::accumulate(logits.begin(), logits.end(), 0.0), expected.sum,
              1e-2);
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
            expected.argmax);
}

INSTANTIATE_TEST_SUITE_P(
    All, OpenVariantsTest,
    testing::Values(
        Expected{"mambaout_femto",
                 224,
                 224,
                 {1.379590f, 0.479407f, 0.037639f, -0.603315f, 0.969583f},
                 -14.25467,
                 440},
        Expected{"mambaout_femto",
                 197,
                 259,
                 {1.616613f, -1.622613f, 0.504501f, -1.042631f, -0.442483f},
                 -12.97948,
                 440},
        Expected{"mambaout_tiny",
                 197,
                 259,
                 {-1.145861f, -0.692413f, -0.150229f, 0.028625f, -0.742426f},
                 3.14690,
                 821},
        Expected{"mambaout_base_short_rw",
                 224,
                 224,
                 {-0.188251f, -0.406423f, 0.043868f, -0.765207f, -0.449084f},
                 -43.08611,
                 545},
        Expected{"test_mambaout",
                 160,
                 160,
                 {-1.622640f, -0.956696f, -0.071774f, -1.145101f, -0.074156f},
                 1.40072,
                 210},
        Expected{"vmamba_t_s1l8",
                 224,
                 224,
                 {-0.736593f, -0.275811f, -0.700282f, 1.355943f, 0.821716f},
                 1.30137,
                 527},
        Expected{"vmamba_t_s1l8",
                 197,
                 259,
                 {-0.799385f, -0.345961f, -0.263820f, 0.937962f, 0.775716f},
                 -6.99733,
                 633},
        Expected{"vmamba_t_s2l5",
                 224,
                 224,
                 {-1.007098f, -0.081413f, 0.124935f, -0.403670f, 0.925621f},
                 -38.93385,
                 84},
        Expected{"efficientvim_m1",
                 224,
                 224,
                 {-0.240923f, -0.097069f, 0.124575f, -0.429505f, -0.139434f},
                 -13.99727,
                 11},
        Expected{"efficientvim_m1",
                 197,
                 259,
                 {-0.241426f, -0.123292f, -0.159556f, -0.331207f, -0.284849f},
                 -12.79749,
                 744},
        Expected{"efficientvim_m2",
                 224,
                 224,
                 {-0.046189f, 0.204186f, 0.054083f, -0.000652f, -0.405641f},
                 -18.96674,
                 249},
        Expected{"efficientvim_m4",
                 256,
                 256,
                 {-0.119150f, -0.240566f, -0.144230f, -0.069379f, -0.242732f},
                 4.72305,
                 531},
        Expected{"efficientvim_m1_dist",
                 224,
                 224,
                 {-0.154200f, 0.026636f, 0.139060f, -0.284573f, -0.245580f},
                 -13.70485,
                 751}));

}  // namespace
}  // namespace sfmamba::model
