// Tests heat maps of whole classifiers, with the default models' weights if
// they exist.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/backbones/backbone.h"
#include "model/heads/classification_head.h"
#include "model/vision_model.h"
#include "model/weights/safetensors.h"
#include "model/weights/state_dict.h"
#include "server/repository/model_directory.h"
#include "tests/model/implementations.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

struct Classifier {
  ModelConfig config;
  std::vector<std::unique_ptr<weights::SafetensorsFile>> files;
  std::map<std::string, weights::TensorView> tensors;
};

// If `name` is a model variant, returns this variant with deterministic
// parameters. Otherwise returns the classifier in the folder `name`.
Classifier Read(const std::string& name) {
  Classifier classifier;
  const absl::StatusOr<ModelConfig> variant = VariantConfig(name);
  if (variant.ok()) {
    classifier.config = *variant;
    return classifier;
  }
  const auto directory =
      repository::ReadModelDirectory({"models/" + name + "/1", ""});
  EXPECT_TRUE(directory.ok()) << directory.status();
  classifier.config = directory->config;
  for (const std::string& path : directory->weights_paths) {
    classifier.files.push_back(*weights::SafetensorsFile::Open(path));
    EXPECT_TRUE(weights::AddTensors(classifier.files.back()->tensors(),
                                    &classifier.tensors)
                    .ok());
  }
  return classifier;
}

class HeatMapTest : public testing::TestWithParam<const char*> {};

TEST_P(HeatMapTest, TheMeanOfEachClasssMapIsItsLogit) {
  constexpr int kAtOnce = 50;
  const c10::InferenceMode guard;
  const Classifier classifier = Read(GetParam());
  const ModelConfig& config = classifier.config;
  weights::StateDict weights = classifier.tensors.empty()
                                   ? weights::StateDict(DeterministicParameter)
                                   : weights::StateDict(classifier.tensors);
  const auto backbone = backbones::MakeBackbone(
      config.backbone, config.image_size, backbones::FeatureMaps::kLast,
      weights.root(), Cpu());
  const heads::ClassificationHead head(config, weights.root(), Cpu());
  const at::Tensor image =
      DeterministicImages({1, 3, config.image_size, config.image_size})
          .contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor map = backbone->Forward(image, 0).back();
  double largest = 0;
  float spread = 0;
  for (int begin = 0; begin < config.num_classes; begin += kAtOnce) {
    const int count = std::min(kAtOnce, config.num_classes - begin);
    std::vector<heads::ImageInfo> infos(count);
    for (int i = 0; i < count; ++i) {
      infos[i].options = ClassificationOptions{/*heat_map=*/true, {begin + i}};
    }
    const auto results =
        head.Forward({map.repeat({count, 1, 1, 1})
                          .contiguous(at::MemoryFormat::ChannelsLast)},
                     infos);
    for (int i = 0; i < count; ++i) {
      const auto& own = std::get<Classification>(results[i]);
      const std::vector<float>& values = own.heat_map.values;
      ASSERT_EQ(values.size(), map.size(2) * map.size(3));
      const double mean =
          std::accumulate(values.begin(), values.end(), 0.0) / values.size();
      largest = std::max(largest, std::abs(mean - own.logits[begin + i]));
      const auto [low, high] =
          std::minmax_element(own.logits.begin(), own.logits.end());
      spread = *high - *low;
    }
  }
  RecordProperty("largest_part_of_spread", std::to_string(largest / spread));
  EXPECT_LE(largest, 1e-5 * spread) << largest / spread;
}

INSTANTIATE_TEST_SUITE_P(Classifiers, HeatMapTest,
                         testing::Values("everyday", "photographs",
                                         "sf_mamba_t", "vmamba_t_s1l8"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

// Runs whole batches through VisionModel, as the server does. Only one image of
// the second batch requests a heat map.
TEST(HeatMapBatchTest, ChangesNoBitOfTheAnswers) {
  for (const bool reference : {false, true}) {
    ModelOptions options;
    options.reference = reference;
    const auto model = MakeModel(SmallModel(), options);
    const std::vector<uint8_t> pixels(3 * kSmallHeight * kSmallWidth, 77);
    std::vector<ModelInput> images(3);
    for (ModelInput& image : images) {
      image.height = kSmallHeight;
      image.width = kSmallWidth;
      image.pixels = pixels.data();
    }
    const auto plain = RunBatch(*model, images);
    images[1].options = ClassificationOptions{/*heat_map=*/true, {}};
    const auto asked = RunBatch(*model, images);
    ASSERT_TRUE(plain.ok() && asked.ok()) << asked.status();
    for (int i = 0; i < 3; ++i) {
      const auto& a = std::get<Classification>((*plain)[i]);
      const auto& b = std::get<Classification>((*asked)[i]);
      EXPECT_EQ(a.logits, b.logits);
      EXPECT_EQ(a.embedding, b.embedding);
      EXPECT_EQ(b.heat_map.values.empty(), i != 1);
    }
  }
}

}  // namespace
}  // namespace sfmamba::model
