#include "server/repository/timm_config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config.h"

namespace sfmamba::repository {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

weights::MambaOutShapes ShapesOf(const std::string& variant) {
  const model::BackboneConfig row = model::VariantConfig(variant)->backbone;
  weights::MambaOutShapes shapes;
  shapes.widths = row.mamba_out.widths;
  shapes.hidden = row.mamba_out.hidden;
  shapes.conv = row.mamba_out.conv;
  shapes.depths = row.depths;
  shapes.rw = row.mamba_out.rw;
  shapes.num_classes = 3;
  return shapes;
}

// timm 1.0.31 writes files like this one.
constexpr char kPlus384[] = R"({
  "architecture": "mambaout_base_plus_rw",
  "num_classes": 3,
  "num_features": 768,
  "global_pool": "avg",
  "label_names": ["cat", "dog", "bird"],
  "pretrained_cfg": {
    "tag": "sw_e150_r384_in12k_ft_in1k",
    "input_size": [3, 384, 384],
    "test_input_size": [3, 384, 384],
    "interpolation": "bicubic",
    "crop_pct": 1.0,
    "crop_mode": "squash",
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "num_classes": 3,
    "first_conv": "stem.conv1",
    "classifier": "head.fc",
    "license": "apache-2.0"
  }
})";

absl::StatusOr<HuggingFaceConfig> Read(const std::string& variant,
                                       const std::string& config,
                                       const v1::ModelConfig& stated = {}) {
  return ReadMambaOutConfig({config, {}}, ShapesOf(variant), stated);
}

std::string ErrorOf(const std::string& variant, const std::string& config) {
  const auto read = Read(variant, config);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

TEST(TimmConfigTest, ReadsWhatTimmWrites) {
  const auto read = Read("mambaout_base_plus_rw", kPlus384);
  ASSERT_TRUE(read.ok()) << read.status();
  const v1::ModelConfig& config = read->config;
  EXPECT_EQ(config.backbone().variant(), "mambaout_base_plus_rw");
  EXPECT_EQ(config.backbone().depths_size(), 0);
  EXPECT_EQ(config.num_classes(), 3);
  EXPECT_EQ(config.input().size(), 384);
  EXPECT_EQ(config.input().crop_pct(), 1);
  EXPECT_EQ(config.input().resize(), v1::Input::STRETCH);
  EXPECT_THAT(read->labels, ElementsAre("cat", "dog", "bird"));
  EXPECT_TRUE(read->warnings.empty());
}

TEST(TimmConfigTest, LabelsMayBeAnObject) {
  const auto read = Read("mambaout_femto", R"({
    "architecture": "mambaout_femto.in1k",
    "label_names": {"0": "a", "1": "b", "2": "c"}})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "mambaout_femto");
  EXPECT_THAT(read->labels, ElementsAre("a", "b", "c"));
}

TEST(TimmConfigTest, DepthsAreThoseOfTheWeights) {
  weights::MambaOutShapes shapes = ShapesOf("mambaout_femto");
  shapes.depths = {1, 1, 2, 1};
  const auto read = ReadMambaOutConfig({R"({"architecture": "mambaout_femto",
           "model_args": {"depths": [1, 1, 2, 1]}})",
                                        {}},
                                       shapes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->config.backbone().depths(), ElementsAre(1, 1, 2, 1));
  EXPECT_EQ(ErrorOf("mambaout_femto",
                    R"({"architecture": "mambaout_femto",
                        "model_args": {"depths": [1, 1, 2, 1]}})"),
            "config.json: model_args.depths: got [1,1,2,1], expected "
            "[3,3,9,3], as the weights have it");
}

TEST(TimmConfigTest, AContradictionNamesTheTensorOrTheMember) {
  EXPECT_EQ(ErrorOf("mambaout_tiny", R"({"architecture": "mambaout_femto"})"),
            "model.safetensors: stages.0.blocks.0.fc2.weight: got [96, 256], "
            "expected [48, 128], as mambaout_femto has it");
  EXPECT_EQ(
      ErrorOf("mambaout_base_short_rw",
              R"({"architecture": "mambaout_base_wide_rw"})"),
      "model.safetensors: stages.0.blocks.0.conv.weight: got 160 channels, "
      "expected 192, as mambaout_base_wide_rw has it");
  EXPECT_EQ(
      ErrorOf("mambaout_small_rw", R"({"architecture": "mambaout_small"})"),
      "model.safetensors: stages.0.blocks.0.ls.gamma: got one, expected "
      "none, as mambaout_small has it");
  EXPECT_EQ(ErrorOf("mambaout_femto", R"({"architecture": "mambaout_femto",
                                          "model_args": {"act_layer": "silu"}})"),
            "config.json: model_args.act_layer: got \"silu\", expected "
            "\"gelu\", as mambaout_femto has it");
  EXPECT_EQ(ErrorOf("mambaout_femto", R"({"architecture": "mambaout_femto",
                                          "global_pool": "max"})"),
            "config.json: global_pool: got \"max\", expected \"avg\"");
}

TEST(TimmConfigTest, ReadsEfficientVim) {
  const auto read = ReadEfficientVimConfig(
      {R"({"architecture": "efficientvim_m4_dist", "global_pool": "",
           "label_names": ["a", "b"],
           "pretrained_cfg": {"tag": "in1k", "input_size": [3, 256, 256],
                              "crop_pct": 0.875, "crop_mode": "center",
                              "interpolation": "bicubic"}})",
       {}},
      /*num_classes=*/2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "efficientvim_m4_dist");
  EXPECT_EQ(read->config.num_classes(), 2);
  EXPECT_EQ(read->config.input().size(), 256);
  EXPECT_THAT(read->labels, ElementsAre("a", "b"));
  EXPECT_EQ(ReadEfficientVimConfig({"{}", {}}, 2).status().message(),
            "config.json: architecture: got none, expected efficientvim_m1, "
            "efficientvim_m1_dist, efficientvim_m2, efficientvim_m2_dist, "
            "efficientvim_m3, efficientvim_m3_dist, efficientvim_m4, "
            "efficientvim_m4_dist");
}

weights::VMambaShapes VMambaShapesOf(const std::string& variant) {
  const model::BackboneConfig row = model::VariantConfig(variant)->backbone;
  return {row.dim, row.ssm_ratio, row.depths, /*num_classes=*/2};
}

TEST(TimmConfigTest, ReadsVMamba) {
  for (const char* variant :
       {"vmamba_t_s1l8", "vmamba_t_s2l5", "vmamba_s_s2l15", "vmamba_s_s1l20",
        "vmamba_b_s2l15", "vmamba_b_s1l20"}) {
    const weights::VMambaShapes shapes = VMambaShapesOf(variant);
    const auto read =
        ReadVMambaConfig({R"({"model_type": "vmamba"})", {}}, shapes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->config.backbone().variant(), variant);
    EXPECT_EQ(read->config.backbone().dim(), 0);
    EXPECT_EQ(read->config.backbone().depths_size(), 0);
  }
  const auto read = ReadVMambaConfig(
      {R"({"model_type": "vmamba", "depths": [2, 2, 8, 2], "embed_dim": 96,
           "architectures": ["VMambaForImageClassification"],
           "dims": [96, 192, 384, 768], "patch_size": 4, "num_classes": 2,
           "id2label": {"0": "a", "1": "b"}})",
       {}},
      VMambaShapesOf("vmamba_t_s1l8"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.num_classes(), 2);
  EXPECT_THAT(read->labels, ElementsAre("a", "b"));
}

TEST(TimmConfigTest, AVMambaOfAnotherSizeHasItsWidthAndDepths) {
  const auto read = ReadVMambaConfig(
      {R"({"model_type": "vmamba", "dims": 8})", {}},
      {/*dim=*/8, /*ssm_ratio=*/2, {1, 2, 3, 4}, /*num_classes=*/2});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "vmamba_t_s2l5");
  EXPECT_EQ(read->config.backbone().dim(), 8);
  EXPECT_THAT(read->config.backbone().depths(), ElementsAre(1, 2, 3, 4));
}

TEST(TimmConfigTest, RefusesWhatVMambasWeightsContradict) {
  const auto error = [](const std::string& config) {
    return std::string(
        ReadVMambaConfig({config, {}}, VMambaShapesOf("vmamba_t_s1l8"))
            .status()
            .message());
  };
  EXPECT_EQ(error(R"({"model_type": "mambavision"})"),
            "config.json: model_type: got \"mambavision\", expected "
            "\"vmamba\", as the weights are VMamba's");
  EXPECT_EQ(error(R"({"depths": [2, 2, 5, 2]})"),
            "config.json: depths: got [2,2,5,2], expected [2,2,8,2], as the "
            "weights have it");
  EXPECT_EQ(error(R"({"dims": 128})"),
            "config.json: dims: got 128, expected [96,192,384,768], as the "
            "weights have it");
}

TEST(TimmConfigTest, AsksForTheVariantThatNothingNames) {
  EXPECT_EQ(ErrorOf("mambaout_kobe", "{}"),
            "config.json: architecture: got none, expected mambaout_kobe by "
            "the shapes of the weights");
  EXPECT_THAT(ErrorOf("mambaout_kobe", R"({"architecture": "resnet50"})"),
              HasSubstr("got \"resnet50\", expected mambaout_kobe"));
}

TEST(TimmConfigTest, AConfigBesideItMayNameTheVariant) {
  v1::ModelConfig stated;
  stated.mutable_backbone()->set_variant("mambaout_kobe");
  const auto read = Read("mambaout_kobe", "{}", stated);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "mambaout_kobe");
  EXPECT_EQ(
      Read("mambaout_kobe", R"({"architecture": "mambaout_tiny"})", stated)
          .status()
          .message(),
      "config.json: architecture: got \"mambaout_tiny\", expected "
      "\"mambaout_kobe\", as config.textproto has it");
}

}  // namespace
}  // namespace sfmamba::repository
