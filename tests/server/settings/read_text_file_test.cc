#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/settings/textproto.h"

namespace sfmamba::server {
namespace {

absl::StatusOr<std::string> Read(const std::string& text, size_t max_bytes) {
  const std::string path = testing::TempDir() + "/text";
  std::ofstream(path, std::ios::binary) << text;
  return ReadTextFile("what", path, max_bytes);
}

TEST(ReadTextFileTest, ReadsAsManyBytesAsAllowed) {
  EXPECT_EQ(*Read("", 4), "");
  EXPECT_EQ(*Read("text", 4), "text");
  EXPECT_EQ(Read("texts", 4).status(),
            absl::InvalidArgumentError(
                "what: got more than 4 bytes, expected at most that"));
}

TEST(ReadTextFileTest, LeavesOutAByteOrderMark) {
  EXPECT_EQ(*Read("\xEF\xBB\xBFtext", 7), "text");
}

TEST(ReadTextFileTest, WhatCannotBeReadIsNotFound) {
  EXPECT_EQ(ReadTextFile("what", "/nonexistent", 4).status(),
            absl::NotFoundError("what: got \"No such file or directory\", "
                                "expected a file that can be read"));
}

}  // namespace
}  // namespace sfmamba::server
