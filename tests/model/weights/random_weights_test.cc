#include "model/weights/random_weights.h"

#include <cmath>
#include <string>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/isfinite.h"
#include "gtest/gtest.h"

namespace sfmamba::weights {
namespace {

TEST(RandomWeightsTest, FollowFromKeyAndSeedAlone) {
  const std::vector<int64_t> shape = {8, 16};
  const at::Tensor weight = MakeRandomWeights(1)("head.weight", shape);
  EXPECT_TRUE(at::equal(weight, MakeRandomWeights(1)("head.weight", shape)));
  EXPECT_FALSE(at::equal(weight, MakeRandomWeights(2)("head.weight", shape)));
  EXPECT_FALSE(at::equal(weight, MakeRandomWeights(1)("tail.weight", shape)));
}

TEST(RandomWeightsTest, NormsChangeNothing) {
  const StateDict::Generator weights = MakeRandomWeights(0);
  for (const char* key : {"bn.weight", "bn.running_var", "outnorm0.weight"}) {
    EXPECT_TRUE((weights(key, {10}) == 1).all().item<bool>()) << key;
  }
  for (const char* key : {"bn.bias", "bn.running_mean", "fc.bias"}) {
    EXPECT_TRUE((weights(key, {10}) == 0).all().item<bool>()) << key;
  }
}

TEST(RandomWeightsTest, LayersKeepTheVariance) {
  struct Case {
    const char* key;
    std::vector<int64_t> shape;
    double gain;
  };
  const StateDict::Generator weights = MakeRandomWeights(0);
  for (const Case& c : std::vector<Case>{
           {"mlp.fc1.weight", {64, 128}, 1},
           {"mixer.conv1d_x.weight", {2000, 1, 3}, 1},
           {"conv1.weight", {64, 32, 3, 3}, std::sqrt(2.0)},
       }) {
    const at::Tensor weight = weights(c.key, c.shape);
    const double fan_in = weight.numel() / c.shape[0];
    EXPECT_NEAR(weight.std().item<double>() * std::sqrt(fan_in), c.gain,
                0.03 * c.gain)
        << c.key;
    EXPECT_NEAR(weight.mean().item<double>(), 0, 0.03) << c.key;
  }
}

TEST(RandomWeightsTest, TheScanDecays) {
  const at::Tensor a_log = MakeRandomWeights(0)("mixer.A_log", {3, 8});
  for (int state = 0; state < 8; ++state) {
    EXPECT_NEAR(std::exp(a_log[2][state].item<double>()), state + 1, 1e-5);
  }
}

}  // namespace
}  // namespace sfmamba::weights
