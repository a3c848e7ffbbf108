#include "model/ops/weight_transforms.h"

#include <cmath>

#include "ATen/TensorOperators.h"
#include "ATen/ops/batch_norm.h"
#include "ATen/ops/conv2d.h"
#include "ATen/ops/linear.h"
#include "gtest/gtest.h"
#include "model/weights/state_dict.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::ops {
namespace {

at::Tensor Normalized(const at::Tensor& x, const BatchNorm& norm) {
  return at::batch_norm(x, norm.weight, norm.bias, norm.mean, norm.var, false,
                        0, norm.eps, false);
}

// Returns the largest difference divided by the largest value.
double RelativeDifference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class FuseTest : public testing::Test {
 protected:
  BatchNorm Norm(double eps) {
    return BatchNorm::Take(dict_.root().Sub("norm"), 5, eps);
  }

  weights::StateDict dict_{
      weights::StateDict::Generator(DeterministicParameter)};
  const at::Tensor images_ = DeterministicImages({2, 3, 7, 6});
  const at::Tensor weight_ = DeterministicParameter("w", {5, 3, 3, 3});
  const at::Tensor bias_ = DeterministicParameter("b", {5});
};

TEST_F(FuseTest, ComposesTheProjectionsOfAScan) {
  constexpr int kRank = 3, kRest = 4, kChannels = 6;
  const Weights x_proj = {
      DeterministicParameter("x_proj", {kRank + kRest, kChannels}), {}};
  const Weights dt_proj = {
      DeterministicParameter("dt_proj", {kChannels, kRank}), {}};
  const at::Tensor u = DeterministicParameter("u", {5, kChannels});
  const at::Tensor p = at::linear(u, x_proj.weight);
  const at::Tensor composed =
      at::linear(u, ComposeProjections(x_proj, dt_proj).weight);
  EXPECT_LE(
      RelativeDifference(composed.narrow(1, 0, kChannels),
                         at::linear(p.narrow(1, 0, kRank), dt_proj.weight)),
      1e-6);
  EXPECT_LE(RelativeDifference(composed.narrow(1, kChannels, kRest),
                               p.narrow(1, kRank, kRest)),
            1e-6);
}

TEST_F(FuseTest, FoldsABatchNormIntoAConvolution) {
  for (const at::Tensor& bias : {bias_, at::Tensor()}) {
    const BatchNorm norm = Norm(1e-4);
    const Weights folded = FoldBatchNorm({weight_, bias}, norm);
    EXPECT_LE(RelativeDifference(
                  at::conv2d(images_, folded.weight, folded.bias),
                  Normalized(at::conv2d(images_, weight_, bias), norm)),
              1e-6);
  }
}

TEST_F(FuseTest, ComposesAClassifiersLayers) {
  const at::Tensor x = DeterministicImages({2, 5, 4, 3});
  const at::Tensor first = DeterministicParameter("first", {7, 5, 1, 1});
  const at::Tensor second = DeterministicParameter("second", {6, 7, 1, 1});
  const BatchNorm norm = Norm(1e-3);
  for (const bool biased : {true, false}) {
    at::Tensor inner, outer;
    if (biased) {
      inner = DeterministicParameter("inner", {7});
      outer = DeterministicParameter("outer", {6});
    }
    const Weights composed =
        ComposePointwise(norm, {first, inner}, {second, outer});
    EXPECT_LE(RelativeDifference(
                  at::conv2d(x, composed.weight, composed.bias),
                  at::conv2d(at::conv2d(Normalized(x, norm), first, inner),
                             second, outer)),
              1e-6);
  }
}

TEST_F(FuseTest, HeedsTheEpsilon) {
  const Affine small = ToAffine(Norm(1e-5));
  const Affine large = ToAffine(Norm(1e-4));
  EXPECT_GT(RelativeDifference(small.scale, large.scale), 1e-5);
}

TEST_F(FuseTest, ABatchNormIsAnAffineMap) {
  const BatchNorm norm = Norm(1e-5);
  const Affine affine = ToAffine(norm);
  const at::Tensor x = DeterministicParameter("x", {4, 5});
  EXPECT_LE(
      RelativeDifference(x * affine.scale + affine.shift, Normalized(x, norm)),
      1e-6);
}

TEST_F(FuseTest, FoldsALayerScaleIntoALinearLayer) {
  const at::Tensor weight = DeterministicParameter("w", {5, 4});
  const at::Tensor gamma = DeterministicParameter("gamma_1", {5});
  const at::Tensor x = DeterministicParameter("x", {3, 4});
  const Weights folded = FoldScale({weight, bias_}, gamma);
  EXPECT_LE(RelativeDifference(at::linear(x, folded.weight, folded.bias),
                               at::linear(x, weight, bias_) * gamma),
            1e-6);
  EXPECT_FALSE(FoldScale({weight, {}}, gamma).bias.defined());
}

TEST_F(FuseTest, TurnsTheDecayRates) {
  const at::Tensor A_log = DeterministicParameter("A_log", {3, 8});
  const at::Tensor A = DecayRates(A_log);
  ASSERT_EQ(A.sizes(), at::IntArrayRef({8, 3}));
  EXPECT_TRUE(A.is_contiguous());
  EXPECT_FLOAT_EQ(A[5][2].item<float>(), -std::exp(A_log[2][5].item<float>()));
}

}  // namespace
}  // namespace sfmamba::ops
