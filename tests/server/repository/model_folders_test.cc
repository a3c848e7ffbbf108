#include "server/repository/model_folders.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
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

  // Writes a version with a weights file of three bytes. Its configuration
  // states that the file has `size` bytes.
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
  // This version is not published.
  fs::create_directories(root_ / "m/11");
  Write("m/policy.textproto", "latest: 7");
  WriteVersion("with space/1");
  WriteVersion(".hidden/1");
  Write("empty/README.md", "");
  const auto models = LookAtModels(root_.string(), false);
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->models.size(), 1);
  const ModelFolder& model = models->models.at("m");
  ASSERT_EQ(model.versions.size(), 2);
  EXPECT_TRUE(model.versions.at(1).complete);
  EXPECT_EQ(model.versions.at(10).path.folder, (root_ / "m/10").string());
  EXPECT_EQ(model.policy->latest(), 7);
}

// Models and versions with unusable names must be reported.
TEST_F(ModelFoldersTest, R2FoldersWithUnusableNamesAreReported) {
  WriteVersion("everyday/1");
  for (const char* name :
       {"everyday/02", "everyday/v3", "everyday/.4", "everyday/6.new",
        "everyday/1.2", "my model/1", "flat", ".hidden/1"}) {
    WriteVersion(name);
  }
  fs::create_directories(root_ / "everyday/02 of notes");
  fs::create_directories(root_ / "lost+found");
  fs::create_directory_symlink("none", root_ / "gone");
  fs::create_directory_symlink("/", root_ / "everyday/5");
  Write("READ ME", "text");
  const auto found = LookAtModels(root_.string(), false);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->models.size(), 1);
  using testing::HasSubstr;
  using testing::Pair;
  EXPECT_THAT(
      found->left_out,
      testing::ElementsAre(
          Pair("everyday/02", HasSubstr("expected a number of 1 or more")),
          Pair("everyday/1.2", HasSubstr("expected a number of 1 or more")),
          Pair("everyday/5", "lies outside the model repository"),
          Pair("everyday/v3", HasSubstr("expected a number of 1 or more")),
          Pair("flat", HasSubstr("expected a folder flat/1")),
          Pair("gone", "is a link to a missing target"),
          Pair("my model", HasSubstr("expected [A-Za-z0-9]"))));
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
  // The file is replaced by another file with the same size and time.
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
  ASSERT_EQ(models->models.size(), 1);
  EXPECT_EQ(models->models.at("m").versions.size(), 1);
}

TEST_F(ModelFoldersTest, R1FollowsLinksThatEndInTheRepository) {
  WriteVersion("store/blue/4");
  fs::create_directory_symlink("../store/blue/4", root_ / "m4");
  fs::create_directories(root_ / "m");
  fs::create_directory_symlink("../store/blue/4", root_ / "m/2");
  fs::create_directory_symlink("store/blue", root_ / "linked");
  // The folder is like the volume of a Kubernetes ConfigMap. In such a volume,
  // a rename replaces all files at once.
  WriteVersion("map/1/..2026");
  fs::create_directory_symlink("..2026", root_ / "map/1/..data");
  for (const char* file :
       {"config.textproto", "model.safetensors", "labels.txt"}) {
    fs::create_symlink(fs::path("..data") / file, root_ / "map/1" / file);
  }
  Write("map/..2026/policy.textproto", "latest: 3");
  fs::create_directory_symlink("..2026", root_ / "map/..data");
  fs::create_symlink("..data/policy.textproto", root_ / "map/policy.textproto");
  // A link to a hidden folder publishes this version.
  WriteVersion("everyday/.versions/abc");
  fs::create_directory_symlink(".versions/abc", root_ / "everyday/1");
  const auto found = LookAtModels(root_.string(), false);
  EXPECT_THAT(found->left_out,
              testing::ElementsAre(testing::Pair("m4", testing::_)));
  const std::map<std::string, ModelFolder>& models = found->models;
  ASSERT_EQ(models.size(), 4);
  EXPECT_TRUE(models.at("everyday").versions.at(1).complete);
  EXPECT_TRUE(models.at("m").versions.at(2).complete);
  EXPECT_TRUE(models.at("linked").versions.at(4).complete);
  EXPECT_EQ(models.at("map").policy->latest(), 3);
  const VersionFolder& map = models.at("map").versions.at(1);
  EXPECT_TRUE(map.complete);

  WriteVersion("map/1/..2027", /*size=*/4);
  fs::create_directory_symlink("..2027", root_ / "map/1/..new");
  fs::rename(root_ / "map/1/..new", root_ / "map/1/..data");
  const VersionFolder after = LookAtVersion(map.path, false);
  EXPECT_NE(after.fingerprint, map.fingerprint);
  EXPECT_FALSE(after.complete);
}

// A child process with its own file system at `folder`, as in a container. The
// process calls `write`, which creates files there. The pid() is -1 if the
// system does not allow this mount.
class OtherContainer {
 public:
  OtherContainer(const fs::path& folder, const std::function<void()>& write) {
    int written[2];
    EXPECT_EQ(pipe(written), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const bool alone = unshare(CLONE_NEWNS) == 0 ||
                         unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
      const bool mounted =
          alone &&
          mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
          mount("none", folder.c_str(), "tmpfs", 0, nullptr) == 0;
      if (!mounted) _exit(1);
      write();
      (void)!::write(written[1], "", 1);
      for (;;) pause();
    }
    close(written[1]);
    char byte;
    const bool ready = read(written[0], &byte, 1) == 1;
    close(written[0]);
    if (!ready) End();
  }
  ~OtherContainer() { End(); }

  int pid() const { return pid_; }

 private:
  void End() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  pid_t pid_ = -1;
};

// KServe's modelcar makes /mnt/models a link to /proc/<pid>/root/models. In
// this process, the link's name means something else or nothing.
TEST_F(ModelFoldersTest, R1AnotherContainersFilesAreTaken) {
  fs::create_directories(root_ / "models");
  WriteVersion("outside/1");
  const OtherContainer car(root_ / "models", [this] {
    WriteVersion("models/m/1");
    WriteVersion("models/.store/2");
    fs::create_directory_symlink("../.store/2", root_ / "models/m/2");
    fs::create_directory_symlink("../../outside/1", root_ / "models/m/3");
    fs::create_directory_symlink(root_ / "outside/1", root_ / "models/m/4");
  });
  if (car.pid() < 0) GTEST_SKIP() << "mounting is not allowed here";
  const std::string mnt = (root_ / "mnt").string();
  fs::create_directory_symlink(
      absl::StrCat("/proc/", car.pid(), "/root", (root_ / "models").string()),
      mnt);
  const auto found = LookAtModels(mnt, false);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->models.size(), 1);
  const ModelFolder& model = found->models.at("m");
  ASSERT_EQ(model.versions.size(), 2);
  EXPECT_TRUE(model.versions.at(1).complete);
  EXPECT_TRUE(model.versions.at(2).complete);
  EXPECT_EQ(found->left_out.count("m/3"), 1) << "a link that leaves it";
  EXPECT_EQ(found->left_out.count("m/4"), 1) << "a link of another container";
  // The flag --model=m=/mnt/models/m/1 accepts links to any place.
  const auto files = FindVersionFiles({mnt + "/m/1", ""});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->weights_size, 3);
}

}  // namespace
}  // namespace sfmamba::repository
