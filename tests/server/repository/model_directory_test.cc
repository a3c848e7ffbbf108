#include "server/repository/model_directory.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "server/base/sha256.h"

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

  // The message of the error that reading gives.
  std::string Error() {
    const absl::Status status = ReadModelDirectory(path_.string()).status();
    EXPECT_FALSE(status.ok());
    const std::string message(status.message());
    EXPECT_EQ(message.find(path_.string()), std::string::npos) << message;
    return message;
  }

  const fs::path path_;
};

TEST_F(ModelDirectoryTest, ReadsAndTranslates) {
  const auto directory = ReadModelDirectory(path_.string());
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->labels, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(directory->weights_size, 3);
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
    const auto directory = ReadModelDirectory(path_.string());
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
  EXPECT_EQ(
      network(Config(*server::FileSha256((path_ / kWeightsFile).string()), 3)),
      before);
}

TEST_F(ModelDirectoryTest, SaysThePrecisionOfTheConfig) {
  const auto read = [this](const std::string& precision) {
    Write(kConfigFile, absl::StrCat(precision, Config(kAbcSha256, 3)));
    return *ReadModelDirectory(path_.string());
  };
  EXPECT_EQ(read("").precision, v1::PRECISION_UNSPECIFIED);
  EXPECT_EQ(read("precision: AUTO ").precision, v1::AUTO);
  EXPECT_EQ(read("precision: AUTO ").config.precision,
            model::Precision::kFloat32);
  EXPECT_EQ(read("precision: BF16 ").config.precision,
            model::Precision::kBFloat16);
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
}

TEST_F(ModelDirectoryTest, LabelsMustBeAsManyAsClasses) {
  Write(kConfigFile, Config(kAbcSha256, 3) + " num_classes: 3");
  EXPECT_NE(Error().find("num_classes: got 3, expected 2"), std::string::npos);
  Write(kLabelsFile, "cat\n\ndog\n");
  EXPECT_NE(Error().find("labels.txt: line 2"), std::string::npos);
  Write(kLabelsFile, "cat\n\xff\n");
  EXPECT_NE(Error().find("labels.txt: line 2"), std::string::npos);
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

// What a version has with random weights.
TEST_F(ModelDirectoryTest, RandomWeightsNeedTheConfigurationAlone) {
  fs::remove(path_ / kWeightsFile);
  fs::remove(path_ / kLabelsFile);
  const std::string path = path_.string();
  EXPECT_FALSE(ReadModelDirectory(path).ok());
  Write(kConfigFile, absl::StrCat(kCustom, "num_classes: 3"));
  auto directory = ReadModelDirectory(path, /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->weights_path, "");
  EXPECT_EQ(directory->labels,
            (std::vector<std::string>{"class_0", "class_1", "class_2"}));

  Write(kLabelsFile, "cat\ndog\nfox\n");
  directory = ReadModelDirectory(path, /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->labels[2], "fox");

  fs::remove(path_ / kConfigFile);
  EXPECT_FALSE(ReadModelDirectory(path, /*random_init=*/true).ok());
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
    const auto directory =
        ReadModelDirectory(path_.string(), /*random_init=*/true);
    ASSERT_TRUE(directory.ok()) << directory.status();
    ASSERT_EQ(directory->labels.size(), c.classes);
    EXPECT_EQ(directory->labels.front(), c.first);
    EXPECT_EQ(directory->labels.back(), c.last);
    EXPECT_EQ(directory->config.num_classes, c.classes);
    EXPECT_EQ(directory->batch.max_batch_size, 4);
  }
}

TEST_F(ModelDirectoryTest, WeightsThatAreThereAreNotRandom) {
  const auto directory =
      ReadModelDirectory(path_.string(), /*random_init=*/true);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(fs::path(directory->weights_path).filename(), kWeightsFile);
  Write(kWeightsFile, "abd");
  EXPECT_FALSE(ReadModelDirectory(path_.string(), /*random_init=*/true).ok());
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
  EXPECT_EQ(Error(), "model.safetensors: lies outside the version's folder");
}

TEST(Sha256Test, OfKnownFiles) {
  const std::string path = testing::TempDir() + "/sha256";
  std::ofstream(path) << "abc";
  EXPECT_EQ(*server::FileSha256(path), kAbcSha256);
  std::ofstream(path, std::ios::trunc) << std::string(1000000, 'a');
  // FIPS 180-2, B.3.
  EXPECT_EQ(*server::FileSha256(path),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_FALSE(server::FileSha256(path + "_absent").ok());
}

}  // namespace
}  // namespace sfmamba::repository
