#include "server/repository/hugging_face_config.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "nlohmann/json.hpp"

namespace sfmamba::repository {
namespace {

using nlohmann::json;
using weights::ClassifierShapes;

ClassifierShapes ShapesOf(const std::string& variant) {
  const model::BackboneConfig row = model::VariantConfig(variant)->backbone;
  ClassifierShapes shapes;
  shapes.dim = row.dim;
  shapes.in_dim = row.in_dim;
  shapes.depths = row.depths;
  shapes.layer_scale = row.layer_scale;
  shapes.attention = true;
  shapes.num_classes = 3;
  return shapes;
}

// Shapes of a small network that is no known variant.
ClassifierShapes SmallShapes() {
  ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  shapes.dim = shapes.in_dim = 8;
  shapes.depths = {1, 1, 1, 1};
  return shapes;
}

absl::StatusOr<HuggingFaceConfig> Read(const std::string& config,
                                       const v1::ModelConfig& stated = {}) {
  return ReadHuggingFaceConfig({config, {}}, ShapesOf("mamba_vision_t"),
                               stated);
}

std::string ErrorOf(const std::string& config,
                    const v1::ModelConfig& stated = {}) {
  const auto read = Read(config, stated);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << config;
  return std::string(read.status().message());
}

// Returns the values that were read from the files or belong to the variant.
// The keys are the names in the cases.
json Resolved(const HuggingFaceConfig& read) {
  const v1::Backbone& backbone = read.config.backbone();
  const v1::Input& input = read.config.input();
  model::ModelConfig row = *model::VariantConfig(backbone.variant());
  json found = {
      {"variant", backbone.variant()},
      {"windows", row.backbone.windows},
      {"num_heads", {row.backbone.num_heads[2], row.backbone.num_heads[3]}},
      {"size", input.size() != 0 ? input.size() : row.image_size},
      {"crop_pct", input.crop_pct() != 0 ? input.crop_pct() : row.crop_pct},
      {"resize", v1::Input::Resize_Name(input.resize())},
      {"mean", row.mean},
      {"std", row.std},
      {"labels", read.labels}};
  if (input.resize() == v1::Input::RESIZE_UNSPECIFIED) {
    found["resize"] =
        row.resize == model::Resize::kStretch ? "STRETCH" : "CENTER_CROP";
  }
  if (backbone.windows_size() > 0) {
    found["windows"] = {backbone.windows(0), backbone.windows(1)};
  }
  if (backbone.num_heads_size() > 0) {
    found["num_heads"] = {backbone.num_heads(2), backbone.num_heads(3)};
  }
  if (input.mean_size() > 0) found["mean"] = input.mean();
  if (input.std_size() > 0) found["std"] = input.std();
  return found;
}

bool IsNear(const json& a, const json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  return std::abs(a.get<double>() - b.get<double>()) < 1e-6;
}

void ExpectFound(const HuggingFaceConfig& read, const json& expected) {
  const json found = Resolved(read);
  for (const auto& [name, value] : expected.items()) {
    const json& got = found[name];
    const bool is_same = value.is_array()
                             ? std::equal(got.begin(), got.end(), value.begin(),
                                          value.end(), IsNear)
                             : IsNear(got, value);
    EXPECT_TRUE(is_same) << name << ": got " << got << ", expected " << value;
  }
}

std::string TextOf(const json& file) {
  return file.is_string() ? file.get<std::string>() : file.dump();
}

// tests/tools/hugging_face_cases_test.py reads the same cases.
TEST(HuggingFaceConfigTest, EachCaseIsReadAsTheConverterReadsIt) {
  std::ifstream file("tests/testdata/hugging_face/cases.json");
  for (const json& each : json::parse(file)) {
    SCOPED_TRACE(each["name"]);
    const std::string row = each.value("row", "t");
    HuggingFaceTexts texts = {TextOf(each["config"]), {}};
    if (each.contains("preprocessor")) {
      texts.preprocessor = TextOf(each["preprocessor"]);
    }
    const auto read = ReadHuggingFaceConfig(
        texts, row == "custom" ? SmallShapes()
                               : ShapesOf(absl::StrCat("mamba_vision_", row)));
    if (each.contains("error")) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(absl::StrContains(
          absl::AsciiStrToLower(read.status().message()),
          absl::AsciiStrToLower(each["error"].get<std::string>())))
          << read.status();
      continue;
    }
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectFound(*read, each["expect"]);
    EXPECT_EQ(json(read->warnings), each.value("warnings", json::array()));
  }
}

TEST(HuggingFaceConfigTest, ANetworkWithoutAttentionIsACustomOne) {
  ClassifierShapes shapes = ShapesOf("mamba_vision_t");
  shapes.attention = false;
  const auto read = ReadHuggingFaceConfig(
      {R"({"model_type": "mambavision", "window_size": [8, 8, 14, 7],
           "num_heads": [2, 4, 8, 16]})",
       {}},
      shapes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "custom");
  EXPECT_TRUE(read->config.backbone().has_attention());
  EXPECT_FALSE(read->config.backbone().attention());
}

TEST(HuggingFaceConfigTest, OtherFamiliesAreRefusedByName) {
  EXPECT_EQ(ErrorOf("{}"),
            "config.json: model_type: got none, expected \"mambavision\", or a "
            "config.textproto beside it that names backbone.variant");
  EXPECT_EQ(ErrorOf(R"({"model_type": "vit"})"),
            "config.json: model_type: got \"vit\", expected \"mambavision\"");
  EXPECT_TRUE(absl::StrContains(ErrorOf(R"({"model_type": "sf_mamba"})"),
                                "convert_checkpoint.py converts SF-Mamba"));
}

TEST(HuggingFaceConfigTest, LabelsAreNotReadIfOthersReplaceThem) {
  const auto read = ReadHuggingFaceConfig(
      {R"({"model_type": "mambavision", "id2label": {"0": "a"}})", {}},
      ShapesOf("mamba_vision_t"), {}, /*with_labels=*/false);
  EXPECT_TRUE(read.ok()) << read.status();
}

TEST(HuggingFaceConfigTest, HostileTextsAreRefused) {
  for (const std::string& text :
       {std::string(1000000, '{'), std::string(1000000, '['),
        absl::StrCat("{\"dim\": ", std::string(500000, '['),
                     std::string(500000, ']'), "}"),
        std::string("{\"model_type\": \"\xff\"}"), std::string("\0", 1)}) {
    EXPECT_LT(ErrorOf(text).size(), 200u);
  }
  const std::string shown =
      ErrorOf(absl::StrCat(R"({"model_type": "mambavision", "dim": ")",
                           std::string(500000, 'x'), "\"}"));
  EXPECT_LT(shown.size(), 200u) << "shown in part";
}

TEST(HuggingFaceConfigTest, ATextprotoBesideItMustBeOfTheFamily) {
  const std::string config = R"({"model_type": "mambavision"})";
  v1::ModelConfig stated;
  stated.set_task(v1::ModelConfig::DETECTION);
  EXPECT_EQ(
      ErrorOf(config, stated),
      "config.textproto: task: got DETECTION, expected CLASSIFICATION, as "
      "config.json is of MambaVision");
  stated.Clear();
  stated.mutable_backbone()->set_variant("sf_mamba_t");
  EXPECT_TRUE(absl::StrContains(ErrorOf(config, stated),
                                "backbone.variant: got sf_mamba_t"));
  stated.Clear();
  stated.mutable_backbone()->set_tokens(v1::Backbone::DATA);
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(config, stated), "backbone.tokens: got DATA"));
  stated.Clear();
  stated.set_precision(v1::BF16);
  stated.mutable_batching()->set_max_batch_size(8);
  EXPECT_TRUE(Read(config, stated).ok());
}

TEST(HuggingFaceConfigTest, ATextprotoBesideItTellsRowsOfTheSameShapesApart) {
  v1::ModelConfig stated;
  stated.mutable_backbone()->set_variant("mamba_vision_l2_512_21k");
  const auto read =
      ReadHuggingFaceConfig({R"({"model_type": "mambavision"})", {}},
                            ShapesOf("mamba_vision_l2"), stated);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->config.backbone().variant(), "mamba_vision_l2_512_21k");
}

}  // namespace
}  // namespace sfmamba::repository
