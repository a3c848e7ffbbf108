#include "model/backbones/lite_trunk.h"

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "ATen/TensorOperators.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/isnan.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/weights/state_dict.h"
#include "tests/model/against_reference.h"
#include "tests/model/expected_map.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::backbones {
namespace {

// Returns deterministic parameters with larger scales, so that a tenth of the
// activations reach ReLU6's limit of 6.
at::Tensor LivelyParameter(const std::string& key, at::IntArrayRef shape) {
  const at::Tensor value = DeterministicParameter(key, shape);
  return absl::EndsWith(key, "bn.weight") ? value * 1.5 : value;
}

class LiteTrunkTest : public testing::TestWithParam<bool> {
 protected:
  std::vector<at::Tensor> Maps(const at::Tensor& images, int stride) {
    const c10::InferenceMode guard;
    weights::StateDict weights(LivelyParameter);
    const LiteTrunk trunk(weights.root(), stride, /*image_size=*/101,
                          model::CpuOrReference(GetParam()));
    return trunk.Forward(GetParam()
                             ? images.contiguous(at::MemoryFormat::ChannelsLast)
                             : images);
  }
};

TEST_P(LiteTrunkTest, MapsAreTheReferences) {
  const std::vector<at::Tensor> maps =
      Maps(DeterministicImages({2, 3, 101, 77}), /*stride=*/32);
  ASSERT_EQ(maps.size(), 4);
  model::ExpectMap(
      maps[0],
      {{2, 24, 26, 20}, -17315.060569, 63261.699465, -2.216007, -0.993426});
  model::ExpectMap(
      maps[1],
      {{2, 40, 13, 10}, 8799.934584, 34255.478912, 2.212065, 0.341276});
  model::ExpectMap(
      maps[2], {{2, 112, 7, 5}, 27.840494, 34368.245070, -1.838464, 5.903534});
  model::ExpectMap(
      maps[3], {{2, 192, 4, 3}, 2.756796, 12117.911393, -2.353082, -4.532600});
}

TEST_P(LiteTrunkTest, EndsAtItsStride) {
  const at::Tensor images = DeterministicImages({2, 3, 101, 77});
  const std::vector<at::Tensor> maps = Maps(images, /*stride=*/16);
  const std::vector<at::Tensor> longer = Maps(images, /*stride=*/32);
  ASSERT_EQ(maps.size(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(maps[i], longer[i])) << i;
}

TEST_P(LiteTrunkTest, WhatIsNoNumberStaysNone) {
  const at::Tensor images = DeterministicImages({2, 3, 101, 77}).clone();
  images[1].select(1, 0).select(1, 0).fill_(
      std::numeric_limits<float>::quiet_NaN());
  for (const at::Tensor& map : Maps(images, /*stride=*/32)) {
    const at::Tensor bad = at::isnan(map);
    EXPECT_FALSE(bad[0].any().item<bool>());
    EXPECT_TRUE(bad[1].select(1, 0).select(1, 0).all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, LiteTrunkTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

class LiteTrunkAgainstReferenceTest : public model::AgainstReference {};

INSTANTIATE_TEST_SUITE_P(All, LiteTrunkAgainstReferenceTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

TEST_P(LiteTrunkAgainstReferenceTest, GivesFourMaps) {
  const auto trunk = Both([](const auto& scope, const auto& ops) {
    return LiteTrunk(scope, /*stride=*/32, /*image_size=*/33, ops);
  });
  for (const auto& [images, height, width] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 33, 18}}) {
    // The values are large enough to reach ReLU6's limit of 6.
    const at::Tensor x =
        model::RandomValues("x", {images, 3, height, width}) * 8;
    const std::vector<at::Tensor> own = trunk.tested.Forward(Map(x));
    const std::vector<at::Tensor> expected = trunk.reference.Forward(x);
    ASSERT_EQ(own.size(), 4);
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE(i);
      ExpectNear(own[i], expected[i]);
    }
  }
}

struct ExpectedAnswer {
  model::ModelConfig config;
  int height, width;
  // The logits of both images, computed by the reference in fp64.
  std::vector<float> logits;
};

std::ostream& operator<<(std::ostream& out, const ExpectedAnswer& expected) {
  return out << expected.height << "x" << expected.width;
}

class LiteModelTest : public testing::TestWithParam<ExpectedAnswer> {
 protected:
  const at::Tensor images_ =
      DeterministicImages({2, 3, GetParam().height, GetParam().width});
};

TEST_P(LiteModelTest, GivesTheReferencesLogits) {
  for (const bool reference : {false, true}) {
    const auto model = model::MakeModel(GetParam().config, {reference});
    EXPECT_LE(model::LargestDifference(model::Logits(*model, images_),
                                       GetParam().logits),
              1e-4)
        << reference;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, LiteModelTest,
    testing::Values(
        ExpectedAnswer{
            model::LiteModel(),
            160,
            160,
            {-2.363981f, 1.695209f, -2.028327f, -0.216124f, -2.504672f,
             -0.576240f, 2.321171f, 3.423095f,  1.081336f,  3.875702f,
             -2.220826f, 1.326783f, 5.011304f,  1.440073f,  -3.153059f,
             -1.350146f, 1.793016f, -0.479311f, -2.179552f, -2.355099f,
             -2.370005f, 1.722810f, -1.982959f, -0.197053f, -2.493805f,
             -0.556047f, 2.346660f, 3.415048f,  1.067908f,  3.783490f,
             -2.231968f, 1.339296f, 4.951520f,  1.495788f,  -3.164472f,
             -1.321503f, 1.752253f, -0.472941f, -2.206088f, -2.349228f}},
        ExpectedAnswer{
            model::LiteModel(),
            131,
            97,
            {-3.286452f, 1.309163f, -0.379347f, -0.579513f, -1.964651f,
             -0.059011f, 2.583564f, 1.593924f,  1.659657f,  3.243779f,
             -0.323770f, 1.070256f, 3.650903f,  0.732812f,  -3.545782f,
             -0.873318f, 0.107221f, -1.124397f, -1.544489f, -1.376755f,
             -3.376240f, 1.287287f, -0.426451f, -0.566126f, -1.946217f,
             -0.079148f, 2.529425f, 1.601946f,  1.717956f,  3.268858f,
             -0.366118f, 1.079451f, 3.681231f,  0.722201f,  -3.521336f,
             -0.943570f, 0.175287f, -1.099170f, -1.502949f, -1.327573f}},
        ExpectedAnswer{
            model::LiteStride32Model(),
            160,
            160,
            {0.492704f,  0.576603f,  -0.398035f, 1.141701f,  0.046019f,
             -0.997613f, 0.377926f,  0.481615f,  -0.242561f, 1.320907f,
             -2.035580f, -1.123671f, -1.430695f, -0.284620f, -0.906971f,
             0.232088f,  -2.210446f, -1.203166f, -0.347352f, 0.873724f,
             0.500254f,  0.581196f,  -0.410999f, 1.129979f,  0.024556f,
             -0.998073f, 0.401611f,  0.484452f,  -0.227470f, 1.333119f,
             -2.052801f, -1.121984f, -1.423602f, -0.290630f, -0.911325f,
             0.239462f,  -2.233992f, -1.197823f, -0.365873f, 0.852981f}},
        ExpectedAnswer{
            model::LiteStride32Model(),
            131,
            97,
            {0.082553f,  0.239657f,  -0.889800f, 1.361217f,  -0.093814f,
             -0.678033f, 0.622110f,  0.143362f,  -0.195452f, 1.637398f,
             -2.088300f, -1.185254f, -1.186241f, -0.812507f, -0.692791f,
             0.024531f,  -1.727915f, -1.317036f, -0.002453f, 0.746225f,
             0.065797f,  0.271173f,  -0.881936f, 1.353068f,  -0.077533f,
             -0.694621f, 0.606451f,  0.139623f,  -0.201232f, 1.620875f,
             -2.083617f, -1.183124f, -1.181491f, -0.824050f, -0.694155f,
             0.013467f,  -1.740124f, -1.290976f, -0.029448f, 0.748736f}}),
    [](const auto& info) {
      const bool longer = info.param.config.backbone.stem ==
                          model::Stem::kEfficientNetLite0Stride32;
      return absl::StrCat(info.param.height == 160 ? "Whole" : "Odd",
                          longer ? "ToStride32" : "");
    });

TEST(LitePyramidTest, MapsAreTheReferences) {
  model::ModelConfig config = model::LiteModel();
  config.backbone.windows = {8, 4};
  config.backbone.output_norms = true;
  for (const bool cpu : {true, false}) {
    const std::vector<at::Tensor> maps =
        model::StageMaps(config, DeterministicImages({1, 3, 152, 200}),
                         model::CpuOrReference(cpu));
    ASSERT_EQ(maps.size(), 4);
    model::ExpectMap(
        maps[0],
        {{1, 24, 38, 50}, -336.408136, 35483.544332, -1.580738, -0.352088});
    model::ExpectMap(
        maps[1],
        {{1, 40, 19, 25}, 264.124849, 15607.132649, -0.985225, 0.012226});
    model::ExpectMap(
        maps[2],
        {{1, 112, 10, 13}, 96.993461, 11653.447012, 0.189286, -1.220755});
    model::ExpectMap(
        maps[3],
        {{1, 224, 5, 7}, -1.990434, 6270.068847, -1.008341, -0.249441});
  }
}

// The stages after the trunk must not overwrite the trunk's maps.
TEST(LitePyramidTest, MapsAreTheTrunks) {
  const at::Tensor images = DeterministicImages({1, 3, 152, 200});
  const std::vector<at::Tensor> maps =
      model::StageMaps(model::LiteModel(), images);
  const c10::InferenceMode guard;
  weights::StateDict weights(DeterministicParameter);
  const LiteTrunk trunk(weights.root().Sub("trunk"), /*stride=*/32,
                        model::LiteModel().image_size, model::Cpu());
  const std::vector<at::Tensor> expected =
      trunk.Forward(images.contiguous(at::MemoryFormat::ChannelsLast));
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(maps[i], expected[i])) << i;
  const std::vector<at::Tensor> longer =
      model::StageMaps(model::LiteStride32Model(), images);
  ASSERT_EQ(longer.size(), 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(at::equal(longer[i], expected[i])) << i;
  }
  EXPECT_EQ(longer[3].sizes(), expected[3].sizes());
}

void ExpectFiniteAnswers(const model::ModelConfig& like) {
  for (const model::VisionTask task :
       {model::VisionTask::kClassification, model::VisionTask::kDetection,
        model::VisionTask::kSegmentation}) {
    model::ModelConfig config = *model::VariantConfig("custom", task);
    const bool dense = task != model::VisionTask::kClassification;
    config.backbone = like.backbone;
    config.backbone.output_norms = dense;
    if (!dense) config.classifier = like.classifier;
    config.segmentation_channels = 16;
    config.detector.channels = 16;
    config.detector.fc_width = 32;
    const auto model = model::VisionModel::Random(config, /*seed=*/1);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto results =
        model::RunModel(**model, DeterministicImages({1, 3, 64, 96}));
    ASSERT_TRUE(results.ok()) << results.status();
    const model::Result& result = (*results)[0];
    if (const auto* answer = std::get_if<model::Classification>(&result)) {
      for (const float logit : answer->logits)
        EXPECT_TRUE(std::isfinite(logit));
    } else if (const auto* answer = std::get_if<model::Detections>(&result)) {
      EXPECT_TRUE(answer->finite);
    } else {
      EXPECT_TRUE(std::get<model::Segmentation>(result).finite);
    }
  }
}

TEST(LiteRandomTest, EveryTasksAnswersAreFinite) {
  ExpectFiniteAnswers(model::LiteModel());
  ExpectFiniteAnswers(model::LiteStride32Model());
}

}  // namespace
}  // namespace sfmamba::backbones
