#include "server/repository/version_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/testing/allocations.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

class VersionFilesTest : public testing::Test {
 protected:
  VersionFilesTest()
      : root_(fs::path(testing::TempDir()) / "files" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_ / "m/1");
    version_ = {(root_ / "m/1").string(), fs::canonical(root_).string()};
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / "m/1" / name, std::ios::binary) << text;
  }

  std::string Error() {
    const auto files = FindVersionFiles(version_);
    EXPECT_FALSE(files.ok());
    const std::string message(files.status().message());
    EXPECT_FALSE(absl::StrContains(message, root_.string())) << message;
    return message;
  }

  std::vector<std::string> Weights() {
    std::vector<std::string> names;
    const auto files = FindVersionFiles(version_);
    EXPECT_TRUE(files.ok()) << files.status();
    for (const std::string& path : files->weights) {
      names.push_back(fs::path(path).filename());
    }
    return names;
  }

  const fs::path root_;
  VersionPath version_;
};

TEST_F(VersionFilesTest, AConfigurationOfEitherLayoutMustBeThere) {
  EXPECT_EQ(Error(),
            "config.textproto: there is no such file, and no config.json");
  Write("config.json", "{}");
  auto files = FindVersionFiles(version_);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->config, "");
  EXPECT_EQ(fs::path(files->hugging_face).filename(), "config.json");
  EXPECT_TRUE(files->weights.empty());
}

TEST_F(VersionFilesTest, ShardsAreThoseOfTheIndex) {
  Write("config.json", "{}");
  Write("model-00002-of-00002.safetensors", "defg");
  Write("model-00001-of-00002.safetensors", "abc");
  Write("other.safetensors", "x");
  Write("model.safetensors.index.json",
        R"({"metadata": {"total_size": 5}, "weight_map": {
            "b": "model-00002-of-00002.safetensors",
            "a": "model-00001-of-00002.safetensors",
            "c": "model-00001-of-00002.safetensors"}})");
  EXPECT_EQ(Weights(),
            (std::vector<std::string>{"model-00001-of-00002.safetensors",
                                      "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(FindVersionFiles(version_)->weights_size, 7);

  const std::string before = Fingerprint(version_);
  Write("model-00002-of-00002.safetensors", "defgh");
  EXPECT_NE(Fingerprint(version_), before);

  Write("model.safetensors", "whole");
  EXPECT_EQ(Weights(), std::vector<std::string>{"model.safetensors"});
  fs::remove(root_ / "m/1/model.safetensors");
  fs::remove(root_ / "m/1/model-00002-of-00002.safetensors");
  EXPECT_EQ(Error(), "model-00002-of-00002.safetensors: there is no such file");
}

TEST_F(VersionFilesTest, AnIndexThatNamesOtherFilesIsRefused) {
  Write("config.json", "{}");
  for (const char* index :
       {"", "[]", "{}", R"({"weight_map": []})", R"({"weight_map": {}})",
        R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": "../b"}})",
        R"({"weight_map": {"a": "../b.safetensors"}})",
        R"({"weight_map": {"a": "/etc/passwd"}})",
        R"({"weight_map": {"a": "x.bin"}})",
        R"({"weight_map": {"a": ".x.safetensors"}})"}) {
    Write("model.safetensors.index.json", index);
    EXPECT_TRUE(absl::StartsWith(Error(), "model.safetensors.index.json: "))
        << index << ": " << Error();
  }
  const auto index_of = [](int shards) {
    std::vector<std::string> entries;
    for (int i = 0; i < shards; ++i) {
      entries.push_back(absl::StrCat("\"", i, "\":\"", i, ".safetensors\""));
    }
    return absl::StrCat("{\"weight_map\": {", absl::StrJoin(entries, ","),
                        "}}");
  };
  Write("model.safetensors.index.json", index_of(1001));
  EXPECT_EQ(Error(),
            "model.safetensors.index.json: expected at most 1000 files");
  Write("model.safetensors.index.json", index_of(1000));
  EXPECT_TRUE(absl::StartsWith(Error(), "0.safetensors")) << Error();
}

TEST_F(VersionFilesTest, AnIndexMayHaveTenMegabytes) {
  Write("config.json", "{}");
  Write("a.safetensors", "abc");
  std::string index = R"({"weight_map": {"a": "a.safetensors"}})";
  index.append(10'000'000 - index.size(), ' ');
  Write("model.safetensors.index.json", index);
  EXPECT_EQ(Weights(), std::vector<std::string>{"a.safetensors"});
  Write("model.safetensors.index.json", index + " ");
  EXPECT_EQ(Error(),
            "model.safetensors.index.json: got more than 10000000 bytes, "
            "expected at most that");
}

TEST_F(VersionFilesTest, ADeepIndexTakesLittleMemory) {
  Write("config.json", "{}");
  Write("a.safetensors", "abc");
  const std::string map = R"({"weight_map": {"a": "a.safetensors"}, "b": )";
  const std::string deep(1'000'000, '[');
  const std::string end(deep.size(), ']');
  for (const std::string& text :
       {map + deep + end + "}", map + R"({"c": {"d": )" + deep + end + "}}}"}) {
    Write("model.safetensors.index.json", text);
    const int64_t bytes = PeakOfHeap([this] {
      EXPECT_EQ(Weights(), std::vector<std::string>{"a.safetensors"});
    });
    EXPECT_LT(bytes, 50'000'000);
  }
  Write("model.safetensors.index.json", deep);
  EXPECT_TRUE(absl::StrContains(Error(), "got more than 20 levels")) << Error();
}

TEST_F(VersionFilesTest, AnIndexThatIsNoJsonIsRefusedWithThePlace) {
  Write("config.json", "{}");
  Write("model.safetensors.index.json", "{\"weight_map\": {\n},}");
  EXPECT_TRUE(absl::StrContains(Error(), "line 2, column 3: got '}' behind"))
      << Error();
  Write("model.safetensors.index.json",
        "version https://git-lfs.github.com/spec/v1\noid sha256:9f\nsize 1\n");
  EXPECT_TRUE(absl::StrContains(Error(), "is a Git LFS pointer")) << Error();
}

TEST_F(VersionFilesTest, APickleIsNamed) {
  Write("config.json", "{}");
  Write("pytorch_model.bin", "x");
  EXPECT_EQ(Error(),
            "model.safetensors: there is no such file; pytorch_model.bin is a "
            "pickle, which tools/convert_checkpoint.py converts");
  fs::remove(root_ / "m/1/config.json");
  EXPECT_EQ(Error(),
            "config.textproto: there is no such file, and no config.json; "
            "model.safetensors: there is no such file; pytorch_model.bin is a "
            "pickle, which tools/convert_checkpoint.py converts");
}

TEST_F(VersionFilesTest, WhatStandsInPlaceOfTheWeightsIsNamed) {
  Write("config.json", "{}");
  for (const auto& [name, expected] :
       {std::pair{"adapter_model.safetensors", "is an adapter, expected"},
        {"adapter_model.bin", "is an adapter, expected"},
        {"pytorch_model-00001-of-00002.bin", "is a pickle"},
        {"pytorch_model.bin.index.json", "is a pickle"},
        {"mambavision_tiny_1k.pth.tar", "is a pickle"},
        {"model-00001-of-00002.safetensors",
         "has another name: expected model.safetensors, or shards with "
         "model.safetensors.index.json"},
        {"model.onnx", "is not served: expected model.safetensors"}}) {
    Write(name, "x");
    EXPECT_TRUE(absl::StrContains(Error(), absl::StrCat(name, " ", expected)))
        << Error();
    fs::remove(root_ / "m/1" / name);
  }
}

// Hugging Face's cache contains links to blobs instead of files.
TEST_F(VersionFilesTest, LinksMayEndAnywhereInTheRoot) {
  fs::create_directories(root_ / "blobs");
  std::ofstream(root_ / "blobs/1") << "{}";
  std::ofstream(root_ / "blobs/2") << "abc";
  fs::create_symlink("../../blobs/1", root_ / "m/1/config.json");
  fs::create_symlink("../../blobs/2", root_ / "m/1/model.safetensors");
  ASSERT_TRUE(FindVersionFiles(version_).ok());
  EXPECT_EQ(FindVersionFiles(version_)->weights_size, 3);
  version_.root = fs::canonical(root_ / "m").string();
  EXPECT_EQ(Error(), "config.json: lies outside the model repository");
  version_.root = "";
  EXPECT_TRUE(FindVersionFiles(version_).ok());
}

TEST_F(VersionFilesTest, ALinkThatEndsNowhereIsNotThere) {
  fs::create_symlink("config.textproto", root_ / "m/1/config.textproto");
  EXPECT_EQ(Error(),
            "config.textproto: there is no such file, and no config.json");
}

// The server must not open these folders, FIFOs, sockets and devices. Opening
// the FIFO would block this test.
TEST_F(VersionFilesTest, WhatIsNoFileIsNamed) {
  Write("config.textproto", "");
  const std::string folder = (root_ / "m/1").string();
  for (const std::string name :
       {"config.textproto", "config.json", "labels.txt", "model.safetensors",
        "model.safetensors.index.json"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_EQ(Error(), name + ": got a folder, expected a file");
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(Error(), name + ": got a FIFO, expected a file");
    fs::remove(path);
    ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
    EXPECT_EQ(Error(), name + ": got a socket, expected a file");
    fs::remove(path);
    fs::create_symlink("/dev/null", path);
    version_.root = "";
    EXPECT_EQ(Error(), name + ": got a device, expected a file");
    version_.root = fs::canonical(root_).string();
    fs::remove(path);
    Write("config.textproto", "");
  }
}

}  // namespace
}  // namespace sfmamba::repository
