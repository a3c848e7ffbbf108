#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/security/security.h"

namespace sfmamba::security {
namespace {

namespace fs = std::filesystem;

// Watches two files. The pair is accepted only if the files are equal.
class WatchedFilesTest : public testing::Test {
 protected:
  WatchedFilesTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  WatchedFiles Watch() {
    WatchedFiles::Options options;
    options.files = {{"cert_file", Path("cert")}, {"key_file", Path("key")}};
    options.max_bytes = 100;
    options.take = [this](const WatchedFiles::Contents& contents) {
      if (contents[0] != contents[1]) {
        return absl::InvalidArgumentError("they differ");
      }
      taken_.push_back(contents[0]);
      return absl::OkStatus();
    };
    options.changed = [this](const absl::Status& status) {
      told_.push_back(status.ok() ? "ok" : std::string(status.message()));
    };
    return WatchedFiles(options);
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }
  void WriteBoth(const std::string& text) const {
    Write("cert", text);
    Write("key", text);
  }

  const fs::path folder_;
  std::vector<std::string> taken_;
  std::vector<std::string> told_;
};

TEST_F(WatchedFilesTest, TakesWhatHasChangedOnce) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  files.Look();
  WriteBoth("2");
  files.Look();
  files.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(told_, std::vector<std::string>{"ok"});
}

TEST_F(WatchedFilesTest, OpenNamesTheFileThatIsMissing) {
  Write("cert", "1");
  const absl::Status status = Watch().Open();
  EXPECT_EQ(status.message(),
            absl::StrCat("key_file: ", Path("key"),
                         ": got \"No such file or directory\", expected a file "
                         "that can be read"));
  Write("key", "2");
  EXPECT_EQ(Watch().Open().message(), "they differ");
}

TEST_F(WatchedFilesTest, FilesWrittenOneAfterAnotherAreNoError) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  Write("cert", "2");
  files.Look();
  Write("key", "2");
  files.Look();
  files.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(told_, std::vector<std::string>{"ok"});
}

// A file that is overwritten is empty for a moment before it is complete.
TEST_F(WatchedFilesTest, WhatIsBeingWrittenIsNotTaken) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  for (const char* const text : {"", "2", "23"}) {
    WriteBoth(text);
    files.Look();
  }
  EXPECT_EQ(taken_, std::vector<std::string>{"1"});
  files.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"1", "23"}));
  EXPECT_EQ(told_, std::vector<std::string>{"ok"});
}

TEST_F(WatchedFilesTest, ErrorThatStaysIsToldOnceAndTheOldFilesCount) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  Write("key", "2");
  for (int i = 0; i < 5; ++i) files.Look();
  EXPECT_EQ(taken_, std::vector<std::string>{"1"});
  EXPECT_EQ(told_, std::vector<std::string>{"they differ"});
  Write("key", "1");  // These contents are already in use.
  files.Look();
  Write("key", "3");
  for (int i = 0; i < 5; ++i) files.Look();
  EXPECT_EQ(told_, (std::vector<std::string>{"they differ", "they differ"}));
  EXPECT_EQ(taken_, std::vector<std::string>{"1"});
}

TEST_F(WatchedFilesTest, MissingAndHugeFilesAreErrors) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  fs::remove(Path("key"));
  files.Look();
  files.Look();
  Write("key", std::string(101, 'x'));
  files.Look();
  files.Look();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(absl::StrContains(told_[0], Path("key"))) << told_[0];
  EXPECT_TRUE(absl::StrContains(told_[1], "101 bytes") ||
              absl::StrContains(told_[1], "100 bytes"))
      << told_[1];
  WriteBoth("2");
  files.Look();
  files.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"1", "2"}));
}

// In Kubernetes, a secret's files are reached through a link. An update
// replaces the link.
TEST_F(WatchedFilesTest, SwappedLinkIsSeen) {
  for (const std::string version : {"1", "2"}) {
    fs::create_directory(Path(version));
    Write(version + "/cert", version);
    Write(version + "/key", version);
  }
  fs::create_directory_symlink("1", Path("data"));
  fs::create_symlink("data/cert", Path("cert"));
  fs::create_symlink("data/key", Path("key"));
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  fs::create_directory_symlink("2", Path("data.new"));
  fs::rename(Path("data.new"), Path("data"));
  files.Look();
  files.Look();
  EXPECT_EQ(taken_, (std::vector<std::string>{"1", "2"}));
}

TEST_F(WatchedFilesTest, FolderInAFilesPlaceIsAnError) {
  WriteBoth("1");
  WatchedFiles files = Watch();
  ASSERT_TRUE(files.Open().ok());
  fs::remove(Path("key"));
  fs::create_directory(Path("key"));
  files.Look();
  files.Look();
  EXPECT_EQ(told_.size(), 1u);
}

}  // namespace
}  // namespace sfmamba::security
