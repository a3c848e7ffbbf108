#include "server/settings/sha256.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace sfmamba::server {
namespace {

std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(FilesSha256Test, IsThatOfTheFilesInARow) {
  // This is the digest of the example in FIPS 180.
  EXPECT_EQ(*FilesSha256({WriteFile("a", "a"), WriteFile("bc", "bc")}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(FilesSha256Test, WhatCannotBeReadHasNone) {
  const std::string file = WriteFile("file", "text");
  EXPECT_EQ(FilesSha256({file, "/nonexistent"}).status().message(),
            "cannot be opened");
  EXPECT_EQ(FilesSha256({testing::TempDir(), file}).status().message(),
            "cannot be read");
}

}  // namespace
}  // namespace sfmamba::server
