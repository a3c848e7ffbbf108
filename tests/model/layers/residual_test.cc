#include "model/layers/residual.h"

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "tests/model/emulated_device.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::layers {
namespace {

constexpr int64_t kLength = 5, kWidth = 24;

// [2, 10, 24]: two sequences in a row.
at::Tensor Tokens(float scale = 1) {
  return DeterministicImages({2, 2 * kLength, kWidth}) * scale;
}

// The same values as a layer gives them.
at::Tensor Rows(const at::Tensor& x, at::ScalarType type = at::kFloat) {
  return x.to(type).view({-1, kWidth});
}

class ResidualTest : public testing::Test {
 protected:
  at::Tensor Normalized(Residual& x, bool swap,
                        at::ScalarType type = at::kFloat) {
    return x.Normalized(gamma_, beta_, kLength, swap, type);
  }

  const c10::InferenceMode inference_;
  const at::Tensor gamma_ = at::full({kWidth}, 1.5);
  const at::Tensor beta_ = at::full({kWidth}, 0.25);
};

TEST_F(ResidualTest, OnTheCpuAddsAtOnce) {
  const at::Tensor memory = Tokens();
  Residual x(memory);
  x.Add(Rows(Tokens(2)));
  EXPECT_TRUE(at::equal(memory, Tokens() + Tokens(2)));
  EXPECT_TRUE(at::equal(x.Sum(), memory));
}

TEST_F(ResidualTest, OnADeviceTheNextNormAdds) {
  const model::EmulatedDevice device;
  for (const bool swap : {false, true}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor memory = Tokens();
      Residual x(memory);
      x.Add(Rows(Tokens(2), type));
      EXPECT_TRUE(at::equal(memory, Tokens())) << "it waits";
      const at::Tensor y = Normalized(x, swap, type);

      Residual sum(Tokens() + Tokens(2).to(type));
      const at::Tensor expected = Normalized(sum, swap, type);
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_TRUE(at::equal(y, expected));
      EXPECT_TRUE(at::equal(memory, sum.Sum())) << "and swapped in x, too";
      EXPECT_TRUE(at::equal(x.Sum(), memory)) << "once only";
    }
  }
}

TEST_F(ResidualTest, OnADeviceWhatWaitsIsInTheSum) {
  const model::EmulatedDevice device;
  Residual x(Tokens());
  x.Add(Rows(Tokens(2)));
  x.View({4, kLength, kWidth});
  x.Add(Rows(Tokens(4)));
  const at::Tensor expected = Tokens() + Tokens(2) + Tokens(4);
  EXPECT_TRUE(at::equal(x.Sum(), expected.view({4, kLength, kWidth})));
}

TEST_F(ResidualTest, ValuesOfAnotherTypeThanTheNormsAreRefused) {
  const model::EmulatedDevice device;
  Residual x(Tokens());
  x.Add(Rows(Tokens(2)));
  EXPECT_THROW(Normalized(x, false, at::kBFloat16), c10::Error);
}

}  // namespace
}  // namespace sfmamba::layers
