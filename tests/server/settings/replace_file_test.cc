#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "server/settings/textproto.h"

namespace sfmamba::server {
namespace {

namespace fs = std::filesystem;

class ReplaceFileTest : public testing::Test {
 protected:
  ReplaceFileTest() { fs::create_directories(folder_); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "replace_file";
};

TEST_F(ReplaceFileTest, LeavesTheNewTextAlone) {
  const fs::path path = folder_ / "file";
  ASSERT_TRUE(ReplaceFile(path, "an older, longer text").ok());
  ASSERT_TRUE(ReplaceFile(path, "new").ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1)
      << "a temporary file was left";
  fs::remove(path);
}

TEST_F(ReplaceFileTest, OthersMayReadTheFile) {
  const fs::path path = folder_ / "file";
  ASSERT_TRUE(ReplaceFile(path, "text").ok());
  EXPECT_EQ(fs::status(path).permissions(),
            fs::perms::owner_read | fs::perms::owner_write |
                fs::perms::group_read | fs::perms::others_read);
  fs::remove(path);
}

TEST_F(ReplaceFileTest, LeavesNoDescriptorOpen) {
  const auto next = [] {
    const int fd = open("/dev/null", O_RDONLY);
    close(fd);
    return fd;
  };
  const int before = next();
  EXPECT_TRUE(ReplaceFile(folder_ / "file", "text").ok());
  fs::remove(folder_ / "file");
  EXPECT_EQ(next(), before);
}

TEST_F(ReplaceFileTest, WhatCannotBeWrittenLeavesNoFile) {
  fs::create_directories(folder_ / "name");  // In the way.
  EXPECT_FALSE(ReplaceFile(folder_ / "name", "text").ok());
  fs::remove(folder_ / "name");
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_FALSE(ReplaceFile("/nonexistent/name", "text").ok());
}

// Files get the number of the standard input where that is closed.
TEST_F(ReplaceFileTest, NeedsNoStandardInput) {
  const fs::path path = folder_ / "file";
  const int input = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  EXPECT_TRUE(ReplaceFile(path, "text").ok());
  if (input >= 0) dup2(input, STDIN_FILENO);
  close(input);
  EXPECT_TRUE(fs::remove(path));
}

// The system writes what has room and reports no error for the rest.
TEST_F(ReplaceFileTest, AFullDiskLeavesTheOldText) {
  const fs::path path = folder_ / "file";
  ASSERT_TRUE(ReplaceFile(path, "old").ok());
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit full = {10, limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  errno = 0;
  const absl::Status status = ReplaceFile(path, "more than ten bytes");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_FALSE(status.ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  fs::remove(path);
}

}  // namespace
}  // namespace sfmamba::server
