#include "server/repository/model_directory.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "ATen/ops/zeros.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/settings/sha256.h"
#include "tests/testing/weights.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

constexpr char kCustom[] = R"(
  backbone {
    variant: "custom" dim: 16 in_dim: 8 depths: [ 1, 1, 5, 3 ]
    num_heads: [ 1, 2, 4, 8 ] windows: [ 4, 2 ] layer_scale: true
  }
  input { size: 64 crop_pct: 0.875 mean: [ 0, 0, 0 ] std: [ 1, 1, 1 ] }
  batching { max_batch_size: 4 max_queue_delay { nanos: 1000 } }
)";
// The digest of the three bytes "abc": FIPS 180-2, B.1.
constexpr char kAbcSha256[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class ModelDirectoryTest : public testing::Test {
 protected:
  ModelDirectoryTest()
      : path_(fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    Write(kWeightsFile, "abc");
    Write(kLabelsFile, "cat\ndog\n");
    Write(kConfigFile, Config(kAbcSha256, 3));
  }

  static std::string Config(const std::string& sha256, int size) {
    return absl::StrCat(kCustom, "weights { size_bytes: ", size, " sha256: '",
                        sha256, "' }");
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

  // Returns the error message of reading the version.
  std::string Error() {
    const absl::Status status = ReadModelDirectory(version_).status();
    EXPECT_FALSE(status.ok());
    const std::string message(status.message());
    EXPECT_EQ(message.find(path_.string()), std::string::npos) << message;
    return message;
  }

  const fs::path path_;
  const VersionPath version_ = {path_.string(), path_.string()};
};

TEST_F(ModelDirectoryTest, ReadsAndTranslates) {
  const auto directory = ReadModelDirectory(version_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->labels, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(directory->config_source, "config.textproto");
  EXPECT_EQ(directory->weights_size, 3);
  EXPECT_EQ(directory->weights_elements, 0) << "they are no safetensors";
  EXPECT_EQ(directory->weights_sha256, kAbcSha256);
  EXPECT_EQ(directory->batch.max_batch_size, 4);
  EXPECT_EQ(directory->batch.max_queue_delay, absl::Microseconds(1));
  const model::ModelConfig& config = directory->config;
  EXPECT_EQ(config.num_classes, 2);
  EXPECT_EQ(config.image_size, 64);
  EXPECT_EQ(config.crop_pct, 0.875);
  EXPECT_EQ(config.mean[2], 0);
  EXPECT_EQ(config.backbone.dim, 16);
  EXPECT_EQ(config.backbone.depths, (std::array<int, 4>{1, 1, 5, 3}));
  EXPECT_EQ(config.backbone.windows, (std::array<int, 2>{4, 2}));
  EXPECT_TRUE(config.backbone.layer_scale);
  EXPECT_TRUE(config.backbone.swap);
}

TEST_F(ModelDirectoryTest, VersionsOfTheSameShapesAreTheSameNetwork) {
  const auto network = [this](const std::string& config) {
    Write(kConfigFile, config);
    const auto directory = ReadModelDirectory(version_);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return directory.ok() ? directory->network : "";
  };
  const std::string config = Config(kAbcSha256, 3);
  const std::string before = network(config);
  EXPECT_EQ(before.find('\n'), std::string::npos);
  EXPECT_NE(network(absl::StrReplaceAll(config, {{"size: 64", "size: 32"}})),
            before);
  EXPECT_EQ(network(absl::StrCat("precision: BF16 ", config)), before);
  EXPECT_EQ(network(absl::StrReplaceAll(
                config, {{"max_batch_size: 4", "max_batch_size: 8"}})),
            before);
  Write(kLabelsFile, "cat\ndog\nfish\n");
  EXPECT_NE(network(config), before);
  Write(kLabelsFile, "fish\nbird\n");
  Write(kWeightsFile, "abd");
  EXPECT_EQ(network(Config(
                *server::FilesSha256({(path_ / kWeightsFile).string()}), 3)),
            before);
}

TEST_F(ModelDirectoryTest, SaysThePrecisionOfTheConfig) {
  const auto read = [this](const std::string& precision) {
    Write(kConfigFile, absl::StrCat(precision, Config(kAbcSha256, 3)));
    return *ReadModelDirectory(version_);
  };
  EXPECT_EQ(read("").precision, v1::PRECISION_UNSPECIFIED);
  EXPECT_EQ(read("precision: AUTO ").precision, v1::AUTO);
  EXPECT_EQ(read("precision: AUTO ").config.precision,
            model::Precision::kFloat32);
  EXPECT_EQ(read("precision: BF16 ").config.precision,
            model::Precision::kBFloat16);
  EXPECT_EQ(read("precision: INT8 ").config.precision, model::Precision::kInt8);
}

TEST_F(ModelDirectoryTest, WeightsMustHaveTheSizeAndDigestOfTheConfig) {
  Write(kConfigFile, Config(kAbcSha256, 4));
  EXPECT_EQ(Error(),
            "model.safetensors: size in bytes: got 3, expected 4 by "
            "config.textproto");
  std::string wrong = kAbcSha256;
  wrong[0] = 'c';
  Write(kConfigFile, Config(wrong, 3));
  EXPECT_NE(Error().find("sha256: got ba78"), std::string::npos);
  Write(kConfigFile, Config("", 3));
  EXPECT_EQ(
      Error(),
      absl::StrCat("config.textproto: weights.sha256: got none, expected ",
                   kAbcSha256, " as model.safetensors has"));
  Write(kConfigFile, Config("", 0));
  EXPECT_EQ(Error(),
            "config.textproto: weights.size_bytes: got none, expected 3 as "
            "model.safetensors has");
}

TEST_F(ModelDirectoryTest, R3AByteOrderMarkIsTaken) {
  Write(kConfigFile, "\xEF\xBB\xBF" + Config(kAbcSha256, 3));
  EXPECT_TRUE(ReadModelDirectory(version_).ok());
}

// tests/tools/training_files_test.py reads the same cases.
TEST_F(ModelDirectoryTest, LabelsAreReadAsTrainingAndTheConverterReadThem) {
  std::ifstream file("tests/testdata/labels/cases.json");
  for (const nlohmann::json& each : nlohmann::json::parse(file)) {
    SCOPED_TRACE(each.dump());
    Write(kLabelsFile, each["text"].get<std::string>());
    if (each.contains("wrong_line")) {
      const std::string place =
          absl::StrCat("labels.txt: line ", each["wrong_line"].get<int>(), " ");
      EXPECT_NE(Error().find(place), std::string::npos) << Error();
      continue;
    }
    const auto directory = ReadModelDirectory(version_);
    ASSERT_TRUE(directory.ok()) << directory.status();
    EXPECT_EQ(directory->labels,
              each["labels"].get<std::vector<std::string>>());
  }
}

TEST_F(ModelDirectoryTest, LabelsMustBeAsManyAsClasses) {
  Write(kConfigFile, Config(kAbcSha256, 3) + " num_classes: 3");
  EXPECT_EQ(Error(),
            "config.textproto: num_classes: got 3, expected 2, the lines of "
            "labels.txt");
  Write(kLabelsFile, "cat\n\ndog\n");
  EXPECT_NE(Error().find("labels.txt: line 2"), std::string::npos);
  Write(kLabelsFile, "cat\n\xff\n");
  EXPECT_NE(Error().find("labels.txt: line 2"), std::string::npos);
}

TEST_F(ModelDirectoryTest, FilesMayBeAsLargeAsTheirLimit) {
  const auto filled = [](std::string text, size_t size) {
    text.append(size - text.size(), '\n');
    return text;
  };
  Write(kConfigFile, filled(Config(kAbcSha256, 3), 1 << 20));
  Write(kLabelsFile, filled("cat\ndog", 16 << 20));
  EXPECT_EQ(ReadModelDirectory(version_).status(), absl::OkStatus());
  Write(kLabelsFile, filled("cat\ndog", (16 << 20) + 1));
  EXPECT_EQ(Error(),
            "labels.txt: got more than 16777216 bytes, expected at most that");
  Write(kConfigFile, filled(Config(kAbcSha256, 3), (1 << 20) + 1));
  EXPECT_EQ(Error(),
            "config.textproto: got more than 1048576 bytes, expected at most "
            "that");
}

TEST_F(ModelDirectoryTest, UnknownFieldIsAnError) {
  Write(kConfigFile, Config(kAbcSha256, 3) + "\nbatch { }");
  EXPECT_NE(Error().find("batch"), std::string::npos);
}

TEST_F(ModelDirectoryTest, EachFileMustBeThere) {
  for (const char* name : {kWeightsFile, kLabelsFile, kConfigFile}) {
    fs::rename(path_ / name, path_ / "away");
    EXPECT_NE(Error().find(name), std::string::npos);
    fs::rename(path_ / "away", path_ / name);
  }
}

// A version with random weights has no weights file and no labels file.
TEST_F(ModelDirectoryTest, RandomWeightsNeedTheConfigurationAlone) {
  fs::remove(path_ / kWeightsFile);
  fs::remove(path_ / kLabelsFile);
  EXPECT_FALSE(ReadModelDirectory(version_).ok());
  Write(kConfigFile, absl::StrCat(kCustom, "num_classes: 3"));
  auto directory = ReadModelDirectory(version_, /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_TRUE(directory->weights_paths.empty());
  EXPECT_EQ(directory->labels,
            (std::vector<std::string>{"class_0", "class_1", "class_2"}));

  Write(kLabelsFile, "cat\ndog\nfox\n");
  directory = ReadModelDirectory(version_, /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->labels[2], "fox");

  fs::remove(path_ / kConfigFile);
  EXPECT_FALSE(ReadModelDirectory(version_, /*random_init=*/true).ok());
}

TEST_F(ModelDirectoryTest, RandomDenseModelsHaveTheirDatasetsClasses) {
  fs::remove(path_ / kWeightsFile);
  fs::remove(path_ / kLabelsFile);
  struct Case {
    const char* task;
    size_t classes;
    const char *first, *last;
  };
  for (const Case& c : {Case{"DETECTION", 80, "person", "toothbrush"},
                        Case{"SEGMENTATION", 150, "wall", "flag"}}) {
    Write(kConfigFile, absl::StrCat("task: ", c.task,
                                    " backbone { variant: 'sf_mamba_t' }"));
    const auto directory = ReadModelDirectory(version_, /*random_init=*/true);
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_EQ(directory->labels.size(), c.classes);
    EXPECT_EQ(directory->labels.front(), c.first);
    EXPECT_EQ(directory->labels.back(), c.last);
    EXPECT_EQ(directory->config.num_classes, c.classes);
    EXPECT_EQ(directory->batch.max_batch_size, 4);
  }
}

TEST_F(ModelDirectoryTest, WeightsThatAreThereAreNotRandom) {
  const auto directory = ReadModelDirectory(version_, /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(fs::path(directory->weights_paths.front()).filename(),
            kWeightsFile);
  Write(kWeightsFile, "abd");
  EXPECT_FALSE(ReadModelDirectory(version_, /*random_init=*/true).ok());
}

TEST_F(ModelDirectoryTest, ADenseModelsWeightsMustBeReadable) {
  Write(kConfigFile, "task: SEGMENTATION backbone { variant: 'sf_mamba_t' }");
  EXPECT_NE(Error().find("model.safetensors: expected at least"),
            std::string::npos);
}

TEST_F(ModelDirectoryTest, NoFileMayLieOutside) {
  const fs::path outside = path_.string() + "_outside";
  std::ofstream(outside) << "abc";
  fs::remove(path_ / kWeightsFile);
  fs::create_symlink(outside, path_ / kWeightsFile);
  EXPECT_EQ(Error(), "model.safetensors: lies outside the model repository");
}

// A version in Hugging Face's layout. Its network is none of the known
// variants.
class HuggingFaceFolderTest : public ModelDirectoryTest {
 protected:
  HuggingFaceFolderTest() {
    fs::remove(path_ / kConfigFile);
    fs::remove(path_ / kLabelsFile);
    config_.backbone.dim = 16;
    config_.backbone.in_dim = 8;
    config_.backbone.depths = {1, 1, 2, 2};
    config_.backbone.num_heads = {1, 1, 2, 4};
    config_.backbone.windows = {4, 2};
    config_.backbone.tokens = model::Tokens::kNone;
    config_.num_classes = 2;
    config_.image_size = 64;
    for (const auto& [key, tensor] : DeterministicWeights(config_)) {
      tensors_["model." + key] = tensor;
    }
    EXPECT_TRUE(WriteWeights((path_ / kWeightsFile).string(), tensors_).ok());
    Write(kHuggingFaceFile, kHuggingFace);
  }

  static constexpr char kHuggingFace[] = R"({
    "model_type": "mambavision", "dim": 16, "in_dim": 8,
    "depths": [1, 1, 2, 2], "num_heads": [1, 1, 2, 4],
    "window_size": [8, 8, 4, 2], "input_size": [3, 64, 64],
    "crop_pct": 0.9, "id2label": {"0": "cat", "1": "dog"}})";

  model::ModelConfig config_;
  std::map<std::string, at::Tensor> tensors_;
};

TEST_F(HuggingFaceFolderTest, IsAModel) {
  EXPECT_TRUE(LooksComplete(version_));
  const auto directory = ReadModelDirectory(version_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->labels, (std::vector<std::string>{"cat", "dog"}));
  int64_t elements = 0;
  for (const auto& [name, tensor] : tensors_) elements += tensor.numel();
  EXPECT_EQ(directory->weights_elements, elements);
  EXPECT_EQ(directory->config_source, "config.json");
  EXPECT_EQ(directory->config.backbone.windows, config_.backbone.windows);
  EXPECT_EQ(directory->config.backbone.tokens, model::Tokens::kNone);
  EXPECT_EQ(directory->config.crop_pct, 0.9);
  EXPECT_EQ(directory->config.image_size, 64);
  EXPECT_EQ(directory->precision, v1::PRECISION_UNSPECIFIED);
  EXPECT_EQ(directory->weights_sha256,
            *server::FilesSha256({(path_ / kWeightsFile).string()}));
  EXPECT_EQ(ReadPurpose(version_)->task, model::VisionTask::kClassification);
}

TEST_F(HuggingFaceFolderTest, ATextprotoBesideItSaysWhatDiffers) {
  Write(kConfigFile,
        "precision: BF16 batching { max_batch_size: 3 } input { size: 96 } "
        "default_for_task: true");
  const auto directory = ReadModelDirectory(version_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config_source, "config.json, config.textproto");
  EXPECT_EQ(directory->precision, v1::BF16);
  EXPECT_EQ(directory->batch.max_batch_size, 3);
  EXPECT_EQ(directory->config.image_size, 96);
  EXPECT_EQ(directory->config.crop_pct, 0.9);
  EXPECT_EQ(directory->config.backbone.windows, config_.backbone.windows);
  EXPECT_TRUE(ReadPurpose(version_)->is_default);
  Write(kConfigFile, "input { mean: [0.5, 0.25, 0.125] }");
  EXPECT_EQ(ReadModelDirectory(version_)->config.mean[1], 0.25f);
  Write(kConfigFile, "backbone { windows: [2, 1] }");
  EXPECT_EQ(ReadModelDirectory(version_)->config.backbone.windows,
            (std::array<int, 2>{2, 1}))
      << "in place of those of the other file";
  // config.textproto states the size of the weights file, which must be right.
  Write(kConfigFile, absl::StrCat("weights { size_bytes: ",
                                  fs::file_size(path_ / kWeightsFile), " }"));
  EXPECT_TRUE(LooksComplete(version_));
  Write(kConfigFile, "weights { size_bytes: 7 }");
  EXPECT_FALSE(LooksComplete(version_));
  EXPECT_EQ(Error().substr(0, 40), "model.safetensors: size in bytes: got 23");
}

TEST_F(HuggingFaceFolderTest, LabelsTxtReplacesItsLabels) {
  Write(kLabelsFile, "chat\nchien\n");
  EXPECT_EQ(ReadModelDirectory(version_)->labels.back(), "chien");
  Write(kLabelsFile, "chat\n");
  EXPECT_EQ(Error(),
            "config.json: num_classes: got 2, expected 1, the lines of "
            "labels.txt");
}

TEST_F(HuggingFaceFolderTest, ShardsAreOneModel) {
  std::map<std::string, at::Tensor> parts[2];
  for (const auto& [key, tensor] : tensors_) {
    parts[parts[0].size() > parts[1].size()][key] = tensor;
  }
  const std::string names[] = {"model-00001-of-00002.safetensors",
                               "model-00002-of-00002.safetensors"};
  for (int i : {0, 1}) {
    ASSERT_TRUE(WriteWeights((path_ / names[i]).string(), parts[i]).ok());
  }
  fs::remove(path_ / kWeightsFile);
  EXPECT_FALSE(LooksComplete(version_));
  Write(kShardsFile, absl::StrCat("{\"weight_map\": {\"x\": \"", names[0],
                                  "\", \"y\": \"", names[1], "\"}}"));
  EXPECT_TRUE(LooksComplete(version_));
  const auto directory = ReadModelDirectory(version_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_EQ(directory->weights_paths.size(), 2);

  parts[1].insert(*parts[0].begin());
  ASSERT_TRUE(WriteWeights((path_ / names[1]).string(), parts[1]).ok());
  EXPECT_NE(Error().find("in two files, expected it in one"),
            std::string::npos);
  fs::remove(path_ / names[1]);
  EXPECT_EQ(Error(), names[1] + ": there is no such file");
}

TEST_F(HuggingFaceFolderTest, APointerOfGitLfsIsNamed) {
  Write(kWeightsFile,
        "version https://git-lfs.github.com/spec/v1\noid sha256:9f\nsize 1\n");
  EXPECT_NE(Error().find("Git LFS"), std::string::npos) << Error();
  EXPECT_FALSE(LooksComplete(version_));
}

TEST_F(HuggingFaceFolderTest, APreprocessorIsReadAndWatched) {
  const std::string before = Fingerprint(version_);
  Write(kPreprocessorFile,
        R"({"image_mean": [0.5, 0.25, 0.125], "size": {"shortest_edge": 96}})");
  EXPECT_NE(Fingerprint(version_), before);
  const auto directory = ReadModelDirectory(version_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.mean[1], 0.25f);
  EXPECT_EQ(directory->config.image_size, 64);
  EXPECT_FALSE(directory->warnings.empty());
  Write(kPreprocessorFile, "{\"image_mean\": NaN}");
  EXPECT_NE(Error().find("preprocessor_config.json: line 1, column 16"),
            std::string::npos)
      << Error();
}

TEST_F(HuggingFaceFolderTest, EachFileThatIsAPointerOfGitLfsIsNamed) {
  for (const char* name : {kHuggingFaceFile, kPreprocessorFile, kLabelsFile,
                           kConfigFile, kWeightsFile}) {
    Write(name, "version https://git-lfs.github.com/spec/v1\nsize 1\n");
    EXPECT_EQ(Error().find(absl::StrCat(name, ": ")), 0u) << Error();
    EXPECT_NE(Error().find("Git LFS pointer"), std::string::npos) << Error();
    fs::remove(path_ / name);
    Write(kHuggingFaceFile, kHuggingFace);
  }
}

TEST_F(ModelDirectoryTest, WeightsThatAreAPointerOfGitLfsAreNamed) {
  Write(kWeightsFile, "version https://git-lfs.github.com/spec/v1\nsize 1\n");
  EXPECT_NE(Error().find("Git LFS pointer"), std::string::npos) << Error();
}

TEST_F(HuggingFaceFolderTest, WeightsOfAnotherNetworkAreRefused) {
  tensors_.erase("model.levels.3.blocks.1.mixer.qkv.weight");
  ASSERT_TRUE(WriteWeights((path_ / kWeightsFile).string(), tensors_).ok());
  Write(kHuggingFaceFile, R"({"model_type": "mambavision", "dim": 80})");
  EXPECT_EQ(Error(),
            "config.json: dim: got 80, expected 16, as the weights have it");
  ASSERT_TRUE(WriteWeights((path_ / kWeightsFile).string(),
                           {{"classifier.weight", at::zeros({2, 3})}})
                  .ok());
  EXPECT_NE(Error().find("model.safetensors: "), std::string::npos) << Error();
}

TEST(Sha256Test, OfKnownFiles) {
  const std::string path = testing::TempDir() + "/sha256";
  std::ofstream(path) << "abc";
  EXPECT_EQ(*server::FilesSha256({path}), kAbcSha256);
  std::ofstream(path, std::ios::trunc) << std::string(1000000, 'a');
  // The digest of the example in FIPS 180-2, B.3.
  EXPECT_EQ(*server::FilesSha256({path}),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_FALSE(server::FilesSha256({path + "_absent"}).ok());
}

}  // namespace
}  // namespace sfmamba::repository
