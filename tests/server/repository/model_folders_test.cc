#include "server/repository/model_folders.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

class ModelFoldersTest : public testing::Test {
 protected:
  ModelFoldersTest()
      : root_(fs::path(testing::TempDir()) / "folders" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  void Write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  // A version whose weights are to have `size` bytes and have three.
  void WriteVersion(const std::string& folder, int size = 3) {
    Write(folder + "/model.safetensors", "abc");
    Write(folder + "/labels.txt", "cat\ndog\n");
    Write(folder + "/config.textproto",
          absl::StrCat("weights { size_bytes: ", size, " }"));
  }

  VersionFolder Look() {
    return LookAtVersion((root_ / "m/1").string(), /*random_init=*/false);
  }

  const fs::path root_;
};

TEST_F(ModelFoldersTest, FindsVersionsAndThePolicy) {
  for (const char* version : {"1", "10", "02", "0", "x", "3 "}) {
    WriteVersion(absl::StrCat("m/", version));
  }
  fs::create_directories(root_ / "m/11");  // Not published.
  Write("m/policy.textproto", "latest: 7");
  WriteVersion("with space/1");
  WriteVersion(".hidden/1");
  Write("empty/README.md", "");
  const auto models = LookAtModels(root_.string(), false);
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->size(), 1);
  const ModelFolder& model = models->at("m");
  ASSERT_EQ(model.versions.size(), 2);
  EXPECT_TRUE(model.versions.at(1).complete);
  EXPECT_EQ(model.versions.at(10).path, (root_ / "m/10").string());
  EXPECT_EQ(model.policy->latest(), 7);
}

TEST_F(ModelFoldersTest, AFolderThatCannotBeReadIsAnError) {
  EXPECT_EQ(LookAtModels((root_ / "none").string(), false).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_TRUE(LookAtModel(root_.string(), "none", false).versions.empty());
  EXPECT_TRUE(LookAtModel(root_.string(), "../m", false).versions.empty());
}

TEST_F(ModelFoldersTest, IsCompleteOnceTheWeightsHaveTheirSize) {
  WriteVersion("m/1", /*size=*/4);
  EXPECT_FALSE(Look().complete);
  Write("m/1/model.safetensors", "abcd");
  EXPECT_TRUE(Look().complete);
  fs::remove(root_ / "m/1/labels.txt");
  EXPECT_FALSE(Look().complete);
  fs::remove(root_ / "m/1/model.safetensors");
  EXPECT_FALSE(Look().complete);
  EXPECT_TRUE(LookAtVersion((root_ / "m/1").string(), true).complete);
  Write("m/1/config.textproto", "weights { size_by");
  EXPECT_FALSE(LookAtVersion((root_ / "m/1").string(), true).complete);
}

TEST_F(ModelFoldersTest, TheFingerprintChangesWithAnyFile) {
  WriteVersion("m/1");
  std::string before = Look().fingerprint;
  EXPECT_EQ(Look().fingerprint, before);
  for (const char* file : {"m/1/config.textproto", "m/1/model.safetensors",
                           "m/1/labels.txt", "m/1/golden/golden.safetensors"}) {
    Write(file, "other text");
    EXPECT_NE(Look().fingerprint, before) << file;
    before = Look().fingerprint;
  }
  Write("m/1/README.md", "text");
  EXPECT_EQ(Look().fingerprint, before);
  // Replaced by another of the same size and time.
  const fs::path labels = root_ / "m/1/labels.txt";
  const auto time = fs::last_write_time(labels);
  Write("new", "other text");
  fs::rename(root_ / "new", labels);
  fs::last_write_time(labels, time);
  EXPECT_NE(Look().fingerprint, before);
}

TEST_F(ModelFoldersTest, LeavesOutWhatLiesOutside) {
  WriteVersion("m/1");
  WriteVersion("outside/x/5");
  fs::create_directory_symlink(root_ / "outside/x/5", root_ / "m/2");
  fs::create_directory_symlink(root_ / "outside/x", root_ / "linked");
  const auto models = LookAtModels(root_.string(), false);
  ASSERT_EQ(models->size(), 1);
  EXPECT_EQ(models->at("m").versions.size(), 1);
}

}  // namespace
}  // namespace sfmamba::repository
