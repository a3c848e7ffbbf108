#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "model/config.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba {
namespace {

// bf16 arithmetic, slowly where the processor has none, against fp32.

// That of one image.
struct Deviation {
  double cosine;
  double largest;  // As a part of the fp32 logits' standard deviation.
  bool same_argmax;
};

Deviation Compare(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0, sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
    sum += b[i];
  }
  const double mean = sum / b.size();
  const double deviation = std::sqrt(bb / b.size() - mean * mean);
  const auto argmax = [](const std::vector<float>& x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  return {ab / std::sqrt(aa * bb), LargestDifference(a, b) / deviation,
          argmax(a) == argmax(b)};
}

void ExpectClose(const ModelConfig& config, const at::Tensor& image) {
  const Deviation deviation =
      Compare(LogitsOf(config, image, {true, Precision::kBFloat16}),
              LogitsOf(config, image, {true, Precision::kFloat32}));
  EXPECT_GE(deviation.cosine, 0.9995);
  EXPECT_LE(deviation.largest, 0.05);
  EXPECT_GT(deviation.largest, 1e-4);  // It was bf16 indeed.
  EXPECT_TRUE(deviation.same_argmax);
}

TEST(HalfPrecisionTest, SmallModelStaysClose) {
  const at::Tensor images =
      DeterministicImages({2, 3, kSmallHeight, kSmallWidth});
  for (int i = 0; i < 2; ++i) {
    ExpectClose(SmallModel(), images.narrow(0, i, 1));
  }
}

TEST(HalfPrecisionTest, TinyStaysClose) {
  ExpectClose(*VariantConfig("sf_mamba_t"),
              DeterministicImages({1, 3, 224, 224}));
}

}  // namespace
}  // namespace sfmamba
