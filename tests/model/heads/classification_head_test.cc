#include "model/heads/classification_head.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <variant>
#include <vector>

#include "ATen/TensorOperators.h"
#include "c10/core/InferenceMode.h"
#include "model/weights/state_dict.h"
#include "tests/model/against_reference.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::heads {
namespace {

class ClassificationHeadTest : public model::AgainstReference {};

const model::Classification& Of(const model::Result& result) {
  return std::get<model::Classification>(result);
}

float Spread(const std::vector<float>& logits) {
  const auto [least, most] = std::minmax_element(logits.begin(), logits.end());
  return *most - *least;
}

double Mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

TEST_P(ClassificationHeadTest, GivesLogitsAndTheEmbedding) {
  model::ModelConfig config;
  config.num_classes = 13;
  config.backbone.dim = 3;
  config.backbone.vim_dim = 19;
  for (const model::Architecture architecture :
       {model::Architecture::kHybrid, model::Architecture::kVim}) {
    config.backbone.architecture = architecture;
    const auto head = Both([&](const auto& scope, const auto& ops) {
      return ClassificationHead(config, scope, ops);
    });
    for (const auto& [images, height, width] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 3}}) {
      const at::Tensor map = model::RandomValues(
          "map", {images, config.backbone.feature_width(), height, width});
      const at::Tensor own = head.tested.Answers({Map(map)});
      EXPECT_EQ(own.scalar_type(), at::kFloat);
      ExpectNear(own, head.reference.Answers({map}));
    }
  }
}

// Some features reach ReLU6's limit of 6.
TEST_P(ClassificationHeadTest, GivesTheFeaturesOfItsNeck) {
  model::ModelConfig config;
  config.num_classes = 13;
  config.backbone.dim = 3;
  config.classifier = {/*channels=*/11, /*features=*/37};
  const auto head = Both([&](const auto& scope, const auto& ops) {
    return ClassificationHead(config, scope, ops);
  });
  for (const auto& [images, height, width] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 3}}) {
    const at::Tensor map =
        model::RandomValues("map", {images, 24, height, width}) * 8;
    const at::Tensor own = head.tested.Answers({Map(map)});
    ASSERT_EQ(own.sizes(), at::IntArrayRef({images, 13 + 37}));
    EXPECT_EQ(own.scalar_type(), at::kFloat);
    ExpectNear(own, head.reference.Answers({map}));
  }
}

TEST_P(ClassificationHeadTest, TheMeanOfAClasssHeatMapIsItsLogit) {
  constexpr int kClasses = 13;
  model::ModelConfig config;
  config.num_classes = kClasses;
  config.backbone.dim = 3;
  for (const int features : {0, 37}) {
    config.classifier = {/*channels=*/features > 0 ? 11 : 0, features};
    const auto head = Both([&](const auto& scope, const auto& ops) {
      return ClassificationHead(config, scope, ops);
    });
    const at::Tensor map = Map(
        model::RandomValues("map", {1, 24, 5, 3}).repeat({kClasses, 1, 1, 1}) *
        8);
    std::vector<ImageInfo> infos(kClasses);
    const auto plain = head.tested.Forward({map}, infos);
    for (int i = 0; i < kClasses; ++i) {
      infos[i].options = model::ClassificationOptions{/*heat_map=*/true, {i}};
    }
    const auto results = head.tested.Forward({map}, infos);
    const float spread = Spread(Of(results[0]).logits);
    for (int i = 0; i < kClasses; ++i) {
      EXPECT_EQ(Of(results[i]).logits, Of(plain[i]).logits);
      EXPECT_EQ(Of(results[i]).embedding, Of(plain[i]).embedding);
      EXPECT_TRUE(Of(plain[i]).heat_map.values.empty());
      const model::HeatMap& heat_map = Of(results[i]).heat_map;
      EXPECT_EQ(heat_map.class_id, i);
      EXPECT_EQ(heat_map.height, 5);
      EXPECT_EQ(heat_map.width, 3);
      ASSERT_EQ(heat_map.values.size(), 15);
      EXPECT_NEAR(Mean(heat_map.values), Of(results[i]).logits[i],
                  1e-5 * spread);
    }
  }
}

TEST_P(ClassificationHeadTest, AHeatMapIsOfTheBestOfItsClasses) {
  model::ModelConfig config;
  config.num_classes = 13;
  config.backbone.dim = 3;
  const auto head = Both([&](const auto& scope, const auto& ops) {
    return ClassificationHead(config, scope, ops);
  });
  const at::Tensor map =
      Map(model::RandomValues("map", {1, 24, 5, 3}).repeat({3, 1, 1, 1}));
  std::vector<ImageInfo> infos(3);
  infos[0].options = model::ClassificationOptions{/*heat_map=*/true, {}};
  infos[1].options = model::ClassificationOptions{/*heat_map=*/true, {7, 2, 7}};
  const auto results = head.tested.Forward({map}, infos);
  const std::vector<float>& logits = Of(results[0]).logits;
  EXPECT_EQ(Of(results[0]).heat_map.class_id,
            std::max_element(logits.begin(), logits.end()) - logits.begin());
  EXPECT_EQ(Of(results[1]).heat_map.class_id, logits[7] > logits[2] ? 7 : 2);
  EXPECT_TRUE(Of(results[2]).heat_map.values.empty());
}

// The expected logits are from tools/pytorch in fp64, computed with separate
// layers. Before the mean over the pixels, 30 % of the features have the value
// 6, which is ReLU6's limit.
TEST(ClassificationHeadNeckTest, GivesPyTorchsLogits) {
  constexpr float kExpected[] = {
      0.722212f,  -0.046315f, -1.372503f, 0.378603f,  -0.900895f, -1.854585f,
      0.827918f,  -4.413662f, 1.651990f,  0.645823f,  -3.998962f, -2.851563f,
      -3.144849f, -0.914026f, -2.600371f, -4.918679f, -1.275964f, 3.381323f,
      1.016593f,  1.311183f,  1.419566f,  0.615704f,  -0.713304f, -0.733236f,
      -0.010372f, -1.661320f, 0.681133f,  -4.268645f, 3.081177f,  1.691107f,
      -4.864228f, -2.589391f, -0.498650f, -1.523945f, -2.420308f, -5.456644f,
      -0.483805f, 2.922733f,  0.600334f,  2.128048f};
  const c10::InferenceMode guard;
  const model::ModelConfig config = model::LiteStride32Model();
  const at::Tensor map = DeterministicImages({2, 192, 5, 3}) * 20;
  for (const bool cpu : {false, true}) {
    weights::StateDict weights(DeterministicParameter);
    const ClassificationHead head(config, weights.root(),
                                  model::CpuOrReference(cpu));
    const at::Tensor answers = head.Answers(
        {cpu ? map.contiguous(at::MemoryFormat::ChannelsLast) : map});
    const at::Tensor logits = answers.narrow(1, 0, 20).flatten();
    for (int i = 0; i < 40; ++i) {
      EXPECT_NEAR(logits[i].item<float>(), kExpected[i], 1e-4) << i;
    }
    EXPECT_NEAR(answers.narrow(1, 20, 1280).sum().item<double>(), 6103.727544,
                1e-2);
  }
}

TEST(ClassificationHeadNeckTest, ResultsHaveTheEmbeddingUnlessItIsNotWanted) {
  const c10::InferenceMode guard;
  weights::StateDict weights(DeterministicParameter);
  const ClassificationHead head(model::LiteStride32Model(), weights.root(),
                                model::CpuOrReference(/*cpu=*/false));
  const at::Tensor answers =
      DeterministicImages({1, 2, 20 + 1280, 1}).view({2, 20 + 1280});
  std::vector<ImageInfo> images(2);
  images[0].options =
      model::ClassificationOptions{/*heat_map=*/false, {}, /*embedding=*/false};
  const std::vector<model::Result> results = head.ToResults(answers, images);
  ASSERT_EQ(results.size(), 2u);
  const auto& first = std::get<model::Classification>(results[0]);
  const auto& second = std::get<model::Classification>(results[1]);
  EXPECT_EQ(first.logits.size(), 20u);
  EXPECT_EQ(first.logits[19], answers[0][19].item<float>());
  EXPECT_TRUE(first.embedding.empty());
  EXPECT_EQ(second.logits[0], answers[1][0].item<float>());
  ASSERT_EQ(second.embedding.size(), 1280u);
  EXPECT_EQ(second.embedding[0], answers[1][20].item<float>());
  EXPECT_EQ(second.embedding[1279], answers[1][1299].item<float>());
}

INSTANTIATE_TEST_SUITE_P(All, ClassificationHeadTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
