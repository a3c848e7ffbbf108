#include "model/config.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelConfig Variant(const std::string& name) {
  absl::StatusOr<ModelConfig> config = VariantConfig(name);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(ModelConfig());
}

TEST(VariantConfigTest, EveryNameIsKnownAndValid) {
  const std::vector<std::string> names = VariantNames();
  EXPECT_EQ(names.size(), 11 + 11 + 4 + 11 + 8 + 6 + 1);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
            names.size());
  for (const std::string& name : names) {
    const ModelConfig config = Variant(name);
    EXPECT_EQ(config.variant, name);
    EXPECT_EQ(Validate(config), absl::OkStatus());
    EXPECT_EQ(config.num_classes, 1000);
  }
}

TEST(VariantConfigTest, UnknownNamesAreNotFound) {
  for (const char* name : {"", "t", "sf_mamba_", "sf_mamba_x", "mamba_vision",
                           "sf_mamba_t ", "SF_MAMBA_T", "vim"}) {
    const absl::Status status = VariantConfig(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("sf_mamba_t2"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("vim_s_uni_swap"));
  }
}

TEST(VariantConfigTest, SmallIsAsPublished) {
  const ModelConfig config = Variant("sf_mamba_s");
  EXPECT_EQ(config.backbone.dim, 96);
  EXPECT_EQ(config.backbone.in_dim, 64);
  EXPECT_THAT(config.backbone.depths, ElementsAre(3, 3, 7, 5));
  EXPECT_THAT(config.backbone.num_heads, ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(config.backbone.windows, ElementsAre(14, 7));
  EXPECT_FALSE(config.backbone.layer_scale);
  EXPECT_EQ(config.backbone.tokens, Tokens::kData);
  EXPECT_TRUE(config.backbone.swap);
  EXPECT_EQ(config.backbone.discard, Discard::kAfterFirstAttention);
  EXPECT_EQ(config.image_size, 224);
}

TEST(VariantConfigTest, LargestIsAsPublished) {
  const ModelConfig config = Variant("mamba_vision_l3_512_21k");
  EXPECT_EQ(config.backbone.dim, 256);
  EXPECT_THAT(config.backbone.depths, ElementsAre(3, 3, 20, 10));
  EXPECT_THAT(config.backbone.num_heads, ElementsAre(4, 8, 16, 32));
  EXPECT_THAT(config.backbone.windows, ElementsAre(32, 16));
  EXPECT_TRUE(config.backbone.layer_scale);
  EXPECT_EQ(config.backbone.tokens, Tokens::kNone);
}

TEST(VariantConfigTest, ImagesAreResizedAsPublished) {
  struct Case {
    const char* variant;
    int resize, crop;
    Resize mode;
  };
  for (const Case& c : std::vector<Case>{
           {"sf_mamba_t", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_t2", 228, 224, Resize::kCenterCrop},
           {"sf_mamba_s", 240, 224, Resize::kCenterCrop},
           {"sf_mamba_b_21k", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_l2", 224, 224, Resize::kCenterCrop},
           {"sf_mamba_l3_256_21k", 256, 256, Resize::kCenterCrop},
           {"sf_mamba_l2_512_21k", 550, 512, Resize::kStretch},
           {"mamba_vision_l3_512_21k", 550, 512, Resize::kStretch},
           {"vim_s", 256, 224, Resize::kCenterCrop},
       }) {
    const ModelConfig config = Variant(c.variant);
    EXPECT_EQ(config.resize_size(), c.resize) << c.variant;
    EXPECT_EQ(config.image_size, c.crop) << c.variant;
    EXPECT_EQ(config.resize, c.mode) << c.variant;
  }
}

TEST(VariantConfigTest, DenseTasksHaveTheirRegions) {
  struct Case {
    const char* variant;
    VisionTask task;
    int stage3, stage4;
  };
  const VisionTask kDetection = VisionTask::kDetection;
  const VisionTask kSegmentation = VisionTask::kSegmentation;
  for (const Case& c : std::vector<Case>{
           {"sf_mamba_t", kDetection, 84, 42},
           {"sf_mamba_s", kDetection, 84, 42},
           {"sf_mamba_b", kDetection, 84, 42},
           {"custom", kDetection, 84, 42},
           {"mamba_vision_t", kDetection, 112, 56},
           {"mamba_vision_s", kDetection, 112, 56},
           {"mamba_vision_b", kDetection, 112, 56},
           {"sf_mamba_t", kSegmentation, 64, 32},
           {"sf_mamba_s", kSegmentation, 64, 32},
           {"sf_mamba_b", kSegmentation, 64, 32},
           {"mamba_vision_t", kSegmentation, 64, 32},
           {"mamba_vision_s", kSegmentation, 160, 56},
           {"mamba_vision_b", kSegmentation, 64, 32},
           {"mamba_vision_l3_512_21k", kSegmentation, 64, 32},
       }) {
    const ModelConfig config = *VariantConfig(c.variant, c.task);
    EXPECT_EQ(Validate(config), absl::OkStatus());
    EXPECT_EQ(config.variant, c.variant);
    EXPECT_EQ(config.task, c.task);
    EXPECT_THAT(config.backbone.windows, ElementsAre(c.stage3, c.stage4))
        << c.variant;
    EXPECT_THAT(config.backbone.attention_windows, ElementsAre(0, 0));
    EXPECT_TRUE(config.backbone.output_norms);
    EXPECT_EQ(config.backbone.layer_scale,
              Variant(c.variant).backbone.layer_scale);
  }
}

TEST(VariantConfigTest, DenseTasksKeepTheRatio) {
  const ModelConfig detector =
      *VariantConfig("sf_mamba_t", VisionTask::kDetection);
  EXPECT_EQ(detector.resize, Resize::kKeepRatio);
  EXPECT_EQ(detector.short_side, 800);
  EXPECT_EQ(detector.long_side, 1333);
  EXPECT_EQ(detector.num_classes, 80);
  const ModelConfig segmenter =
      *VariantConfig("mamba_vision_b", VisionTask::kSegmentation);
  EXPECT_EQ(segmenter.resize, Resize::kKeepRatio);
  EXPECT_EQ(segmenter.short_side, 512);
  EXPECT_EQ(segmenter.long_side, 2048);
  EXPECT_EQ(segmenter.num_classes, 150);
  const ModelConfig largest =
      *VariantConfig("mamba_vision_l3_512_21k", VisionTask::kSegmentation);
  EXPECT_EQ(largest.short_side, 640);
  EXPECT_EQ(largest.long_side, 2560);
}

TEST(VariantConfigTest, OnlyDetectorsPad) {
  const ModelConfig detector =
      *VariantConfig("sf_mamba_t", VisionTask::kDetection);
  const ModelConfig segmenter =
      *VariantConfig("sf_mamba_t", VisionTask::kSegmentation);
  struct Case {
    int side, padded;
  };
  for (const Case& c : std::vector<Case>{
           {1067, 1088}, {1199, 1216}, {1333, 1344}, {750, 768}, {800, 800}}) {
    EXPECT_EQ(detector.Padded(c.side), c.padded);
    EXPECT_EQ(segmenter.Padded(c.side), c.side);
  }
}

TEST(VariantConfigTest, VimHasNoDenseTask) {
  for (const VisionTask task :
       {VisionTask::kDetection, VisionTask::kSegmentation}) {
    EXPECT_EQ(VariantConfig("vim_s", task).status().code(),
              absl::StatusCode::kUnimplemented);
  }
  EXPECT_TRUE(VariantConfig("vim_s", VisionTask::kClassification).ok());
}

TEST(VariantConfigTest, VimVariantsDifferInWidthDirectionAndTokens) {
  EXPECT_EQ(Variant("vim_t").backbone.vim_dim, 192);
  EXPECT_EQ(Variant("vim_s").backbone.vim_dim, 384);
  EXPECT_TRUE(Variant("vim_s").backbone.vim_backward);
  EXPECT_EQ(Variant("vim_s_uni").backbone.vim_dim, 400);
  EXPECT_FALSE(Variant("vim_s_uni").backbone.vim_backward);
  EXPECT_EQ(Variant("vim_s_uni").backbone.tokens, Tokens::kNone);
  EXPECT_EQ(Variant("vim_s_uni_swap").backbone.tokens, Tokens::kData);
}

TEST(BackboneConfigTest, MambaBlocksAreTheLargerHalf) {
  struct Case {
    const char* variant;
    int stage3, stage4;
  };
  for (const Case& c : std::vector<Case>{{"sf_mamba_t", 4, 2},
                                         {"sf_mamba_t2", 6, 2},
                                         {"sf_mamba_s", 4, 3},
                                         {"sf_mamba_b", 5, 3},
                                         {"sf_mamba_l2", 6, 3},
                                         {"sf_mamba_l3_256_21k", 10, 5}}) {
    const BackboneConfig config = Variant(c.variant).backbone;
    EXPECT_EQ(config.mamba_blocks(2), c.stage3) << c.variant;
    EXPECT_EQ(config.mamba_blocks(3), c.stage4) << c.variant;
  }
  BackboneConfig config;
  config.attention = false;
  EXPECT_EQ(config.mamba_blocks(2), 8);
  config.attention = true;
  config.mamba = false;
  EXPECT_EQ(config.mamba_blocks(2), 0);
}

TEST(BackboneConfigTest, EachStageDoublesTheWidth) {
  const BackboneConfig config;
  EXPECT_EQ(config.width(0), 80);
  EXPECT_EQ(config.width(3), 640);
}

TEST(BackboneConfigTest, EfficientNetLite0HasWidthsOfItsOwn) {
  BackboneConfig config;
  config.stem = Stem::kEfficientNetLite0;
  config.dim = 28;
  EXPECT_EQ(config.width(0), 24);
  EXPECT_EQ(config.width(1), 40);
  EXPECT_EQ(config.width(2), 112);
  EXPECT_EQ(config.width(3), 224);
  EXPECT_EQ(config.feature_width(), 224);
  EXPECT_EQ(config.first_stage(), 2);
  EXPECT_EQ(config.mamba_blocks(2), 4);
  config.stem = Stem::kEfficientNetLite0Stride32;
  config.dim = 24;
  EXPECT_EQ(config.width(2), 112);
  EXPECT_EQ(config.width(3), 192);
  EXPECT_EQ(config.first_stage(), 3);
  EXPECT_EQ(config.mamba_blocks(2), 0);
  EXPECT_EQ(config.mamba_blocks(3), 2);
}

TEST(ModelConfigTest, TheEmbeddingIsAsWideAsTheLastFeatures) {
  ModelConfig config;
  EXPECT_EQ(config.embedding_width(), 640);
  config.classifier = {/*channels=*/320, /*features=*/1280};
  EXPECT_EQ(config.embedding_width(), 1280);
  EXPECT_EQ(Variant("vim_s").embedding_width(), 384);
}

}  // namespace
}  // namespace sfmamba::model
