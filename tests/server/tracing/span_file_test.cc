#include "server/tracing/span_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::tracing {
namespace {

class SpanFileTest : public testing::Test {
 protected:
  SpanFileTest() {
    const testing::TestInfo* test =
        testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "/" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    path_ = folder_ + "/spans.jsonl";
  }

  static absl::Status Write(SpanFile& file, const std::string& line) {
    return file.Write(line, [] { return false; });
  }
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SpanFileTest, AppendsLines) {
  {
    SpanFile file(path_, 100);
    EXPECT_TRUE(Write(file, "{1}").ok());
    EXPECT_TRUE(Write(file, "{2}").ok());
    EXPECT_EQ(Read(path_), "{1}\n{2}\n");
  }
  SpanFile again(path_, 100);
  EXPECT_TRUE(Write(again, "{3}").ok());
  EXPECT_EQ(Read(path_), "{1}\n{2}\n{3}\n");
}

TEST_F(SpanFileTest, IsNeverLargerThanItsLimitAndKeepsOneOlderFile) {
  SpanFile file(path_, 10);
  for (const char* line : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) {
    EXPECT_TRUE(Write(file, line).ok());
    EXPECT_LE(std::filesystem::file_size(path_), 10);
  }
  EXPECT_EQ(Read(path_), "eeee\n");
  EXPECT_EQ(Read(path_ + ".1"), "cccc\ndddd\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(SpanFileTest, ALineLargerThanTheLimitIsRefused) {
  SpanFile file(path_, 10);
  EXPECT_TRUE(Write(file, "123456789").ok());
  const absl::Status status = Write(file, "1234567890");
  EXPECT_EQ(status.message(),
            "trace_file: got a line of 11 bytes, expected at most 10");
  EXPECT_EQ(Read(path_), "123456789\n");
}

TEST_F(SpanFileTest, AFolderThatIsMissingIsAnErrorUntilItIsThere) {
  std::filesystem::remove(folder_);
  SpanFile file(path_, 100);
  const absl::Status status = Write(file, "{1}");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message().find(folder_), status.message().npos) << status;
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(Write(file, "{2}").ok());
  EXPECT_EQ(Read(path_), "{2}\n");
}

TEST_F(SpanFileTest, WhatIsNoFileIsRefused) {
  SpanFile file("/dev/null", 100);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Write(file, "{1}").ok());
}

TEST_F(SpanFileTest, NoLineIsWrittenBeyondTheLimitIfTheFileCannotBeRenamed) {
  std::filesystem::create_directory(path_ + ".1");
  SpanFile file(path_, 10);
  EXPECT_TRUE(Write(file, "123456789").ok());
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = Write(file, "{2}");
    EXPECT_NE(status.message().find("cannot be renamed"), status.message().npos)
        << status;
  }
  EXPECT_EQ(Read(path_), "123456789\n");
  std::filesystem::remove(path_ + ".1");
  EXPECT_TRUE(Write(file, "{3}").ok());
  EXPECT_EQ(Read(path_), "{3}\n");
}

// Opening a pipe to write waits for somebody who reads.
TEST_F(SpanFileTest, APipeIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  SpanFile file(path_, 100);
  TimeLimit limit("the refusal");
  EXPECT_FALSE(Write(file, "{1}").ok());
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_FALSE(Write(file, "{2}").ok());
  close(reader);
}

// The process's limit ends a write in its middle, like a full disk.
TEST_F(SpanFileTest, OnAFullDiskNoLineIsWrittenInHalf) {
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  SpanFile file(path_, 100);
  EXPECT_TRUE(Write(file, "{1}").ok());
  const rlimit full = {6, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  const absl::Status status = Write(file, "{22222}");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Read(path_), "{1}\n");
  EXPECT_TRUE(Write(file, "{3}").ok());
  EXPECT_EQ(Read(path_), "{1}\n{3}\n");
}

}  // namespace
}  // namespace sfmamba::tracing
