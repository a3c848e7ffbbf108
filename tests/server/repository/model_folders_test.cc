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
    return LookAtVersion(Version(), /*random_init=*/false);
  }

  VersionPath Version() const {
    return {(root_ / "m/1").string(), fs::canonical(root_).string()};
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
  EXPECT_EQ(model.versions.at(10).path.folder, (root_ / "m/10").string());
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
  EXPECT_TRUE(LookAtVersion(Version(), true).complete);
  Write("m/1/config.textproto", "weights { size_by");
  EXPECT_FALSE(LookAtVersion(Version(), true).complete);
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
  WriteVersion("repository/m/1");
  WriteVersion("outside/x/5");
  fs::create_directory_symlink(root_ / "outside/x/5", root_ / "repository/m/2");
  fs::create_directory_symlink(root_ / "outside/x",
                               root_ / "repository/linked");
  fs::create_directory_symlink(root_ / "repository2",
                               root_ / "repository/near");
  WriteVersion("repository2/1");
  fs::create_directory_symlink(root_ / "none", root_ / "repository/dangling");
  fs::create_directory_symlink(root_ / "repository", root_ / "repository/m/3");
  const auto models = LookAtModels((root_ / "repository").string(), false);
  ASSERT_EQ(models->size(), 1);
  EXPECT_EQ(models->at("m").versions.size(), 1);
}

TEST_F(ModelFoldersTest, FollowsLinksThatEndInTheRepository) {
  WriteVersion("store/blue/4");
  fs::create_directory_symlink("../store/blue/4", root_ / "m4");
  fs::create_directories(root_ / "m");
  fs::create_directory_symlink("../store/blue/4", root_ / "m/2");
  fs::create_directory_symlink("store/blue", root_ / "linked");
  // A ConfigMap's volume, whose files are replaced at once by a rename.
  WriteVersion("map/1/..2026");
  fs::create_directory_symlink("..2026", root_ / "map/1/..data");
  for (const char* file :
       {"config.textproto", "model.safetensors", "labels.txt"}) {
    fs::create_symlink(fs::path("..data") / file, root_ / "map/1" / file);
  }
  const auto models = LookAtModels(root_.string(), false);
  ASSERT_EQ(models->size(), 3);
  EXPECT_TRUE(models->at("m").versions.at(2).complete);
  EXPECT_TRUE(models->at("linked").versions.at(4).complete);
  const VersionFolder& map = models->at("map").versions.at(1);
  EXPECT_TRUE(map.complete);

  WriteVersion("map/1/..2027", /*size=*/4);
  fs::create_directory_symlink("..2027", root_ / "map/1/..new");
  fs::rename(root_ / "map/1/..new", root_ / "map/1/..data");
  const VersionFolder after = LookAtVersion(map.path, false);
  EXPECT_NE(after.fingerprint, map.fingerprint);
  EXPECT_FALSE(after.complete);
}

}  // namespace
}  // namespace sfmamba::repository
