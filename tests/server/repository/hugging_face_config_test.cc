#include "server/repository/hugging_face_config.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "model/config.h"

namespace sfmamba::repository {
namespace {

using weights::ClassifierShapes;

ClassifierShapes ShapesOf(const std::string& variant, int classes = 2) {
  const model::BackboneConfig row = model::VariantConfig(variant)->backbone;
  ClassifierShapes shapes;
  shapes.dim = row.dim;
  shapes.in_dim = row.in_dim;
  shapes.depths = row.depths;
  shapes.layer_scale = row.layer_scale;
  shapes.attention = true;
  shapes.num_classes = classes;
  return shapes;
}

// A configuration in the long form; `more` are further members.
std::string Config(const std::string& more = "") {
  return absl::StrCat(R"({"model_type": "mambavision")",
                      more.empty() ? "" : ", ", more, "}");
}

std::string ErrorOf(const std::string& json, const ClassifierShapes& shapes,
                    const v1::ModelConfig& stated = {}) {
  const auto read = ReadHuggingFaceConfig(json, shapes, stated);
  EXPECT_FALSE(read.ok()) << json;
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

std::string VariantOf(const std::string& json, const std::string& variant,
                      const v1::ModelConfig& stated = {}) {
  const auto read = ReadHuggingFaceConfig(json, ShapesOf(variant), stated);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->config.backbone().variant() : "";
}

TEST(HuggingFaceConfigTest, TheShapesTellTheVariant) {
  for (const char* variant :
       {"mamba_vision_t", "mamba_vision_t2", "mamba_vision_s", "mamba_vision_b",
        "mamba_vision_l"}) {
    EXPECT_EQ(VariantOf(Config(), variant), variant);
  }
}

TEST(HuggingFaceConfigTest, TheWindowsTellVariantsOfTheSameShapes) {
  const std::string small = Config(R"("window_size": [8, 8, 14, 7])");
  const std::string large = Config(R"("window_size": [8, 8, 32, 16])");
  EXPECT_EQ(VariantOf(small, "mamba_vision_l2"), "mamba_vision_l2");
  EXPECT_EQ(VariantOf(large, "mamba_vision_l2"), "mamba_vision_l2_512_21k");
  EXPECT_EQ(VariantOf(large, "mamba_vision_l3_256_21k"),
            "mamba_vision_l3_512_21k");
  EXPECT_EQ(
      ErrorOf(Config(), ShapesOf("mamba_vision_l2")),
      "config.json: window_size: got none, expected windows of mamba_vision_l2 "
      "(14, 7) or mamba_vision_l2_512_21k (32, 16)");
  v1::ModelConfig stated;
  stated.mutable_backbone()->set_variant("mamba_vision_l2_512_21k");
  EXPECT_EQ(VariantOf(Config(), "mamba_vision_l2", stated),
            "mamba_vision_l2_512_21k");
}

TEST(HuggingFaceConfigTest, ReadsTheLongForm) {
  const auto read = ReadHuggingFaceConfig(
      Config(R"("window_size": [8, 8, 28, 14], "num_heads": [2, 4, 4, 8],
             "mean": [0.1, 0.2, 0.3], "std": [1, 2, 3], "crop_pct": 0.93,
             "crop_mode": "squash", "input_size": [3, 448, 448],
             "interpolation": "bicubic", "dim": 80, "in_dim": 32,
             "depths": [1, 3, 8, 4], "torch_dtype": "float32",
             "layer_scale": null, "unknown": [{}],
             "id2label": {"1": "goldfish, Carassius auratus", "0": " tench"})"),
      ShapesOf("mamba_vision_t"));
  ASSERT_TRUE(read.ok()) << read.status();
  const v1::ModelConfig& config = read->config;
  EXPECT_EQ(config.task(), v1::ModelConfig::CLASSIFICATION);
  EXPECT_EQ(config.num_classes(), 2);
  EXPECT_EQ(config.backbone().variant(), "mamba_vision_t");
  EXPECT_EQ(absl::StrJoin(config.backbone().windows(), ","), "28,14");
  EXPECT_EQ(absl::StrJoin(config.backbone().num_heads(), ","), "2,4,4,8");
  EXPECT_EQ(absl::StrJoin(config.input().mean(), ","), "0.1,0.2,0.3");
  EXPECT_EQ(absl::StrJoin(config.input().std(), ","), "1,2,3");
  EXPECT_EQ(config.input().crop_pct(), 0.93);
  EXPECT_EQ(config.input().resize(), v1::Input::STRETCH);
  EXPECT_EQ(config.input().size(), 448);
  EXPECT_EQ(read->labels,
            (std::vector<std::string>{"tench", "goldfish, Carassius auratus"}));
}

TEST(HuggingFaceConfigTest, TheFirstSizeOfTheInputCounts) {
  for (const char* sizes :
       {R"("input_size": 448)", R"("input_size": [448, 448])",
        R"("input_size": [3, 448, 448], "image_size": [3, 448])",
        R"("image_size": 448, "img_size": 224)", R"("img_size": [448, 448])"}) {
    const auto read = ReadHuggingFaceConfig(
        Config(absl::StrCat(R"("crop_mode": "center", )", sizes)),
        ShapesOf("mamba_vision_t"));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->config.input().size(), 448) << sizes;
    EXPECT_EQ(read->config.input().resize(), v1::Input::CENTER_CROP);
  }
}

TEST(HuggingFaceConfigTest, OtherShapesAreACustomNetwork) {
  ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  shapes.depths = {1, 3, 9, 4};
  shapes.layer_scale = true;
  const std::string windows = R"("window_size": [8, 8, 14, 7])";
  const std::string heads = R"("num_heads": [2, 4, 8, 16])";
  const auto read =
      ReadHuggingFaceConfig(Config(windows + ", " + heads), shapes);
  ASSERT_TRUE(read.ok()) << read.status();
  const v1::Backbone& backbone = read->config.backbone();
  EXPECT_EQ(backbone.variant(), "custom");
  EXPECT_EQ(backbone.tokens(), v1::Backbone::NONE);
  EXPECT_EQ(backbone.dim(), 80);
  EXPECT_EQ(backbone.in_dim(), 32);
  EXPECT_TRUE(backbone.layer_scale());
  EXPECT_EQ(absl::StrJoin(backbone.windows(), ","), "14,7");
  EXPECT_EQ(absl::StrJoin(backbone.depths(), ","), "1,3,9,4");
  EXPECT_EQ(ErrorOf(Config(windows), shapes),
            "config.json: num_heads: got none, expected 4 numbers");
  EXPECT_EQ(ErrorOf(Config(heads), shapes),
            "config.json: window_size: got none, expected 4 numbers");
}

TEST(HuggingFaceConfigTest, ANetworkWithoutAttentionIsACustomOneToo) {
  ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  shapes.attention = false;
  const auto read = ReadHuggingFaceConfig(
      Config(R"("window_size": [8, 8, 14, 7], "num_heads": [2, 4, 8, 16])"),
      shapes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "custom");
  EXPECT_TRUE(read->config.backbone().has_attention());
  EXPECT_FALSE(read->config.backbone().attention());
}

TEST(HuggingFaceConfigTest, TheFamilyIsNamedOrRefused) {
  const ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  for (
      const char* json :
      {R"({"architectures": ["MambaVisionForImageClassification"]})",
       R"({"auto_map": {"AutoModel": "modeling_mambavision.MambaVisionModel"}})",
       R"({"model_type": null, "architectures": ["MambaVision"]})"}) {
    EXPECT_EQ(VariantOf(json, "mamba_vision_t"), "mamba_vision_t");
  }
  // SF-Mamba's weights have the same shapes: without evidence, neither is
  // taken.
  EXPECT_EQ(ErrorOf("{}", shapes),
            "config.json: model_type: got none, expected \"mambavision\", or a "
            "config.textproto beside it that names backbone.variant");
  EXPECT_EQ(ErrorOf(R"({"model_type": "vit"})", shapes),
            "config.json: model_type: got \"vit\", expected \"mambavision\"");
  ErrorOf(R"({"architectures": ["ViT"], "auto_map": 3})", shapes);
  ErrorOf(R"({"architectures": "MambaVisio"})", shapes);
}

TEST(HuggingFaceConfigTest, LabelsMustBeOneForEachClass) {
  const auto error = [](const std::string& labels) {
    return ErrorOf(Config(absl::StrCat(R"("id2label": )", labels)),
                   ShapesOf("mamba_vision_t", /*classes=*/3));
  };
  EXPECT_EQ(error(R"({"0": "LABEL_0", "1": "LABEL_1"})"),
            "config.json: id2label: got \"2 labels\", expected one for each of "
            "the 3 rows of head.weight; a labels.txt beside it replaces them");
  EXPECT_EQ(error(R"({"0": "a", "1": "b", "3": "c"})"),
            "config.json: id2label: got {\"3\":\"c\"}, expected labels of 0 to "
            "2");
  EXPECT_EQ(error(R"({"0": "a", "1": "b", "02": "c", "2": "d"})").substr(0, 40),
            "config.json: id2label: got \"4 labels\", e");
  EXPECT_EQ(error(R"({"0": "a", "1": "b", "01": "c"})"),
            "config.json: id2label.2: got \"\", expected a label");
  EXPECT_EQ(error(R"({"0": "a", "1": " ", "2": "c"})"),
            "config.json: id2label.1: got \"\", expected a label");
  EXPECT_EQ(error(R"(["a", "b", "c"])").substr(0, 45),
            "config.json: id2label: got [\"a\",\"b\",\"c\"], exp");
  const auto without = ReadHuggingFaceConfig(
      Config(), ShapesOf("mamba_vision_t", 3), {}, /*with_labels=*/true);
  ASSERT_TRUE(without.ok());
  EXPECT_TRUE(without->labels.empty());
  const auto replaced = ReadHuggingFaceConfig(
      Config(R"("id2label": {"0": "LABEL_0"})"), ShapesOf("mamba_vision_t", 3),
      {}, /*with_labels=*/false);
  EXPECT_TRUE(replaced.ok()) << replaced.status();
}

TEST(HuggingFaceConfigTest, WhatContradictsTheWeightsIsRefused) {
  const auto error = [](const std::string& more) {
    return ErrorOf(Config(more), ShapesOf("mamba_vision_t"));
  };
  EXPECT_EQ(error(R"("dim": 96)"),
            "config.json: dim: got 96, expected 80, as the weights have it");
  EXPECT_EQ(error(R"("in_dim": "32")"),
            "config.json: in_dim: got \"32\", expected 32, as the weights have "
            "it");
  EXPECT_EQ(error(R"("depths": [3, 3, 7, 5])"),
            "config.json: depths: got [3,3,7,5], expected [1,3,8,4], as the "
            "weights have it");
}

TEST(HuggingFaceConfigTest, ValuesOfTheWrongTypeAreRefused) {
  const ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  for (const auto& [member, value] : {std::pair{"window_size", "[8, 8, 14]"},
                                      {"window_size", "14"},
                                      {"window_size", "[8, 8, 14, 7.5]"},
                                      {"window_size", "[8, 8, 14, -7]"},
                                      {"window_size", "[8, 8, 14, 5000000000]"},
                                      {"num_heads", "[2, 4, 8, true]"},
                                      {"mean", "[0.5, 0.5]"},
                                      {"std", R"(["1", "1", "1"])"},
                                      {"crop_pct", R"("1.0")"},
                                      {"crop_mode", R"("border")"},
                                      {"crop_mode", "1"},
                                      {"interpolation", R"("nearest")"},
                                      {"input_size", "[3, 224, 256]"},
                                      {"input_size", "[1, 224, 224]"},
                                      {"image_size", "0"},
                                      {"img_size", "1e3"},
                                      {"id2label", "3"}}) {
    const std::string json = Config(absl::StrCat("\"", member, "\": ", value));
    EXPECT_TRUE(absl::StartsWith(
        ErrorOf(json, shapes), absl::StrCat("config.json: ", member, ": got ")))
        << json << ": " << ErrorOf(json, shapes);
  }
}

TEST(HuggingFaceConfigTest, WhatIsNoConfigurationIsRefused) {
  const ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  for (const std::string& json :
       {std::string(), std::string("[]"), std::string("{"),
        std::string("version https://git-lfs.github.com/spec/v1"),
        Config("\"x\": NaN"), Config() + "x",
        // Deep enough to overflow the stack of what recurses.
        Config(absl::StrCat("\"dim\": ", std::string(500000, '['),
                            std::string(500000, ']'))),
        std::string(1000000, '{')}) {
    EXPECT_EQ(ErrorOf(json, shapes),
              "config.json: expected a JSON object of at most 20 levels");
  }
  // Shown in part.
  EXPECT_EQ(ErrorOf(Config(absl::StrCat("\"dim\": \"", std::string(500000, 'x'),
                                        "\"")),
                    shapes),
            absl::StrCat("config.json: dim: got \"", std::string(99, 'x'),
                         ", expected 80, as the weights have it"));
  EXPECT_EQ(ErrorOf("{\"model_type\": \"\xff\"}", shapes),
            "config.json: expected a JSON object of at most 20 levels");
}

TEST(HuggingFaceConfigTest, TwentyLevelsAreRead) {
  const auto nested = [](int lists) {
    return Config(absl::StrCat("\"x\": ", std::string(lists, '['), 1,
                               std::string(lists, ']')));
  };
  EXPECT_EQ(VariantOf(nested(19), "mamba_vision_t"), "mamba_vision_t");
  EXPECT_EQ(ErrorOf(nested(20), ShapesOf("mamba_vision_t")),
            "config.json: expected a JSON object of at most 20 levels");
}

TEST(HuggingFaceConfigTest, ATextprotoBesideItMustBeOfTheFamily) {
  const ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  v1::ModelConfig stated;
  stated.set_task(v1::ModelConfig::DETECTION);
  EXPECT_EQ(
      ErrorOf(Config(), shapes, stated),
      "config.textproto: task: got DETECTION, expected CLASSIFICATION, as "
      "config.json is of MambaVision");
  stated.Clear();
  stated.mutable_backbone()->set_variant("sf_mamba_t");
  EXPECT_TRUE(absl::StrContains(ErrorOf(Config(), shapes, stated),
                                "backbone.variant: got sf_mamba_t"));
  stated.Clear();
  stated.mutable_backbone()->set_tokens(v1::Backbone::DATA);
  EXPECT_TRUE(absl::StrContains(ErrorOf(Config(), shapes, stated),
                                "backbone.tokens: got DATA"));
  stated.Clear();
  stated.set_precision(v1::BF16);
  stated.mutable_batching()->set_max_batch_size(8);
  EXPECT_EQ(VariantOf(Config(), "mamba_vision_t", stated), "mamba_vision_t");
}

}  // namespace
}  // namespace sfmamba::repository
