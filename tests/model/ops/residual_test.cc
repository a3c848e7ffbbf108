#include "model/ops/residual.h"

#include <memory>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/layer_norm_op.h"
#include "tests/model/emulated_device.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::ops {
namespace {

constexpr int64_t kLength = 5, kWidth = 24;

// Returns tokens [2, 10, 24], with two sequences per row.
at::Tensor Tokens(float scale = 1) {
  return DeterministicImages({2, 2 * kLength, kWidth}) * scale;
}

// Returns tokens as a layer returns them: as rows in the layer's type.
at::Tensor Rows(const at::Tensor& x, at::ScalarType type = at::kFloat) {
  return x.to(type).view({-1, kWidth});
}

class ResidualTest : public testing::Test {
 protected:
  // Makes a LayerNorm on an emulated device.
  static std::unique_ptr<LayerNormOp> MakeNorm(model::Precision precision) {
    const CudaImplementation cuda(model::EmulatedOps(), at::kCPU, {precision});
    return cuda.MakeLayerNorm(
        {at::full({kWidth}, 1.5), at::full({kWidth}, 0.25)});
  }

  const c10::InferenceMode inference_;
};

TEST_F(ResidualTest, AddsAtOnce) {
  const at::Tensor memory = Tokens();
  Residual x(memory);
  x.Add(Rows(Tokens(2)));
  EXPECT_TRUE(at::equal(memory, Tokens() + Tokens(2)));
  EXPECT_TRUE(at::equal(x.Sum(), memory));
}

TEST_F(ResidualTest, OnADeviceTheNextNormAddsWhatWaits) {
  for (const bool swap : {false, true}) {
    for (const model::Precision precision :
         {model::Precision::kFloat32, model::Precision::kBFloat16}) {
      const at::ScalarType type =
          precision == model::Precision::kFloat32 ? at::kFloat : at::kBFloat16;
      const auto norm = MakeNorm(precision);
      const at::Tensor memory = Tokens();
      Residual x(memory);
      x.AddLater(Rows(Tokens(2), type));
      EXPECT_TRUE(at::equal(memory, Tokens())) << "it waits";
      const at::Tensor y = norm->Forward(x, kLength, swap);

      Residual sum(Tokens() + Tokens(2).to(type));
      const at::Tensor expected = norm->Forward(sum, kLength, swap);
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_TRUE(at::equal(y, expected));
      EXPECT_TRUE(at::equal(memory, sum.Sum())) << "and swapped in x, too";
      EXPECT_TRUE(at::equal(x.Sum(), memory)) << "once only";
    }
  }
}

TEST_F(ResidualTest, WhatWaitsIsInTheSum) {
  Residual x(Tokens());
  x.AddLater(Rows(Tokens(2)));
  x.View({4, kLength, kWidth});
  x.AddLater(Rows(Tokens(4)));
  const at::Tensor expected = Tokens() + Tokens(2) + Tokens(4);
  EXPECT_TRUE(at::equal(x.Sum(), expected.view({4, kLength, kWidth})));
}

TEST_F(ResidualTest, ValuesOfAnotherTypeThanTheNormsAreRefused) {
  Residual x(Tokens());
  x.AddLater(Rows(Tokens(2)));
  EXPECT_THROW(
      MakeNorm(model::Precision::kBFloat16)->Forward(x, kLength, false),
      c10::Error);
}

TEST(SwapEndsTest, ExchangesTheEndsOfEverySequenceInARow) {
  const at::Tensor x = at::arange(8, at::kFloat).view({1, 8, 1});
  const at::Tensor y = SwapEnds(x, 4);
  const float expected[] = {3, 1, 2, 0, 7, 5, 6, 4};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y[0][i][0].item<float>(), expected[i]);
}

}  // namespace
}  // namespace sfmamba::ops
