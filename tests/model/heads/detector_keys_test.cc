#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "model/engine/make_vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {
namespace {

// The size of a part of a model in a checkpoint, such as "neck" or "roi_head".
struct Part {
  int entries = 0;         // Includes num_batches_tracked.
  int64_t parameters = 0;  // Excludes running statistics.
};

std::map<std::string, Part> PartsOf(const model::ModelConfig& config) {
  EXPECT_EQ(model::Validate(config), absl::OkStatus());
  std::map<std::string, Part> parts;
  weights::StateDict weights(
      [&](const std::string& key, at::IntArrayRef shape) {
        Part& part = parts[key.substr(0, key.find('.'))];
        const at::Tensor tensor = at::empty(shape, c10::kFloat);
        // A running variance is accompanied by a num_batches_tracked.
        part.entries += absl::EndsWith(key, ".running_var") ? 2 : 1;
        if (!absl::StrContains(key, ".running_"))
          part.parameters += tensor.numel();
        return tensor;
      });
  const auto model =
      engine::MakeVisionModel(config, weights, {/*reference=*/true});
  EXPECT_TRUE(model.ok()) << model.status();
  return parts;
}

int Entries(const std::map<std::string, Part>& parts) {
  int entries = 0;
  for (const auto& [name, part] : parts) entries += part.entries;
  return entries;
}

struct Expected {
  const char* variant;
  int entries;
  int64_t backbone, neck;  // The numbers of parameters in these parts.
};

class CascadeKeysTest : public testing::TestWithParam<Expected> {};

// The expected numbers of entries and parameters are the numbers of the
// reference's modules. docs/heads.md, "Checkpoint keys", lists the keys.
INSTANTIATE_TEST_SUITE_P(
    Variants, CascadeKeysTest,
    testing::Values(Expected{"mamba_vision_t", 401, 31154368, 2668544},
                    Expected{"sf_mamba_t", 401, 31154368, 2668544},
                    Expected{"sf_mamba_s", 434, 49372928, 2729984},
                    Expected{"sf_mamba_b", 505, 96662080, 2852864}),
    [](const auto& info) { return info.param.variant; });

TEST_P(CascadeKeysTest, AreAsManyAsTheReferences) {
  const auto config =
      model::VariantConfig(GetParam().variant, model::VisionTask::kDetection);
  ASSERT_TRUE(config.ok()) << config.status();
  std::map<std::string, Part> parts = PartsOf(*config);
  EXPECT_EQ(parts.size(), 4);
  EXPECT_EQ(Entries(parts), GetParam().entries);
  EXPECT_EQ(parts["backbone"].parameters, GetParam().backbone);
  EXPECT_EQ(parts["neck"].entries, 16);
  EXPECT_EQ(parts["neck"].parameters, GetParam().neck);
  EXPECT_EQ(parts["rpn_head"].entries, 6);
  EXPECT_EQ(parts["rpn_head"].parameters, 593935);
  EXPECT_EQ(parts["roi_head"].entries, 126);
  EXPECT_EQ(parts["roi_head"].parameters, 54785187);
}

// Returns a Mask R-CNN, which has one box stage.
model::ModelConfig MaskRcnn(const char* variant) {
  model::ModelConfig config =
      *model::VariantConfig(variant, model::VisionTask::kDetection);
  config.detector.box_stages = 1;
  config.detector.box_stds.resize(1);
  config.detector.box_convs = 0;
  config.detector.box_fcs = 2;
  return config;
}

TEST(DetectorKeysTest, OfOneStage) {
  model::ModelConfig config = MaskRcnn("sf_mamba_t");
  const Part mask_rcnn = PartsOf(config)["roi_head"];
  EXPECT_EQ(mask_rcnn.entries, 20);
  EXPECT_EQ(mask_rcnn.parameters, 16949985);
  config.detector.masks = false;
  const Part faster_rcnn = PartsOf(config)["roi_head"];
  EXPECT_EQ(faster_rcnn.entries, 8);
  EXPECT_EQ(faster_rcnn.parameters, 14306705);
}

TEST(DetectorKeysTest, OfVMamba) {
  for (const auto& [variant, entries, parameters] :
       {std::tuple{"vmamba_t_s1l8", 322, 49755312},
        {"vmamba_t_s2l5", 268, 50212080},
        {"vmamba_s_s2l15", 448, 69654000},
        {"vmamba_b_s2l15", 448, 107931376}}) {
    SCOPED_TRACE(variant);
    const std::map<std::string, Part> parts = PartsOf(MaskRcnn(variant));
    EXPECT_EQ(parts.size(), 4);
    EXPECT_EQ(Entries(parts), entries);
    int64_t sum = 0;
    for (const auto& [name, part] : parts) sum += part.parameters;
    EXPECT_EQ(sum, parameters);
  }
}

}  // namespace
}  // namespace sfmamba::heads
