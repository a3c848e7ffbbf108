#include "gtest/gtest.h"
#include "model/config.h"
#include "tests/model/deviation.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

// bf16 arithmetic, slowly where the processor has none, against fp32.
void ExpectClose(const ModelConfig& config, const at::Tensor& image) {
  const Deviation deviation =
      DeviationOf(LogitsOf(config, image, Cpu(Precision::kBFloat16)),
                  LogitsOf(config, image, Cpu()));
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
}  // namespace sfmamba::model
