#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "model/weights/safetensors.h"
#include "server/repository/model_directory.h"
#include "tests/testing/run_model.h"
#include "tests/testing/weights.h"

namespace sfmamba {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;

// The width and height of the test picture in pixels.
constexpr int kSide = 96;

// Reads model directories that tools/convert_checkpoint.py has written. The
// checkpoints have deterministic parameters.
class ConvertedModelTest : public testing::Test {
 protected:
  // Copies the model's folder and reads the copy. Bazel's data files are links
  // to files in another folder. The server refuses links that lead out of a
  // model's folder.
  absl::StatusOr<repository::ModelDirectory> Read(const std::string& task) {
    const fs::path copy = fs::path(testing::TempDir()) / task;
    fs::create_directories(copy);
    for (const char* name : {repository::kConfigFile, repository::kLabelsFile,
                             repository::kWeightsFile}) {
      fs::copy_file(fs::path("tests/tools/converted") / task / name,
                    copy / name, fs::copy_options::overwrite_existing);
    }
    return repository::ReadModelDirectory({copy.string(), copy.string()});
  }

  // Expects that the weights file has exactly the model's tensors, bit for bit.
  void ExpectDeterministicWeights(const repository::ModelDirectory& directory) {
    const auto file =
        weights::SafetensorsFile::Open(directory.weights_paths.front());
    ASSERT_TRUE(file.ok()) << file.status();
    std::map<std::string, at::Tensor> expected =
        DeterministicWeights(directory.config);
    EXPECT_EQ((*file)->tensors().size(), expected.size());
    for (const auto& [name, view] : (*file)->tensors()) {
      ASSERT_EQ(expected.count(name), 1) << name;
      const at::Tensor& tensor = expected[name];
      ASSERT_EQ(view.shape, tensor.sizes().vec()) << name;
      ASSERT_EQ(view.data.size(), tensor.nbytes()) << name;
      EXPECT_EQ(std::memcmp(view.data.data(), tensor.const_data_ptr(),
                            view.data.size()),
                0)
          << name;
    }
  }

  // Loads the model and returns its answer to a grey picture.
  absl::StatusOr<model::Result> Answer(
      const repository::ModelDirectory& directory) {
    auto model =
        model::VisionModel::Load(directory.config, directory.weights_paths);
    if (!model.ok()) return model.status();
    const std::vector<uint8_t> pixels(kSide * kSide * 3, 128);
    model::ModelInput input;
    input.height = input.width = kSide;
    input.pixels = pixels.data();
    auto results = model::RunBatch(**model, {input});
    if (!results.ok()) return results.status();
    return results->front();
  }
};

TEST_F(ConvertedModelTest, AClassifierLoadsAndAnswers) {
  const auto directory = Read("classification");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.task, model::VisionTask::kClassification);
  EXPECT_EQ(directory->labels.size(), 10);
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Classification>(*result));
}

TEST_F(ConvertedModelTest, AClassifierOnATrunkLoadsAndAnswers) {
  const auto directory = Read("trunk");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.task, model::VisionTask::kClassification);
  EXPECT_THAT(directory->labels, ElementsAre("cat", "dog", "cup"));
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Classification>(*result));
}

TEST_F(ConvertedModelTest, ADetectorLoadsAndAnswers) {
  const auto directory = Read("detection");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.task, model::VisionTask::kDetection);
  EXPECT_THAT(directory->labels, ElementsAre("cat", "dog", "traffic light"));
  EXPECT_EQ(directory->config.detector.box_stages, 3);
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Detections>(*result));
}

TEST_F(ConvertedModelTest, AVMambaLoadsAndAnswers) {
  const auto directory = Read("vmamba");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.backbone.architecture,
            model::Architecture::kVMamba);
  EXPECT_EQ(directory->labels.size(), 10);
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Classification>(*result));
}

TEST_F(ConvertedModelTest, ADetectorOnVMambaLoadsAndAnswers) {
  const auto directory = Read("vmamba_detection");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.backbone.architecture,
            model::Architecture::kVMamba);
  EXPECT_THAT(directory->labels, ElementsAre("cat", "dog", "traffic light"));
  EXPECT_EQ(directory->config.detector.box_stages, 1);
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Detections>(*result));
}

TEST_F(ConvertedModelTest, ASegmenterLoadsAndAnswers) {
  const auto directory = Read("segmentation");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->config.task, model::VisionTask::kSegmentation);
  EXPECT_EQ(directory->labels.size(), 150);
  EXPECT_EQ(directory->labels.front(), "wall");
  ExpectDeterministicWeights(*directory);
  const auto result = Answer(*directory);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(std::holds_alternative<model::Segmentation>(*result));
}

}  // namespace
}  // namespace sfmamba
