#include "client/commands/picture_source.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::client {
namespace {

class FolderPicturesTest : public testing::Test {
 protected:
  FolderPicturesTest() : folder_(testing::TempDir() + "/watched") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Write(const std::string& name,
                    const std::string& bytes = "bytes") {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << bytes;
    return path;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const std::string folder_;
};

TEST_F(FolderPicturesTest, TakesWhatIsThereByName) {
  const std::string b = Write("b.webp"), a = Write("a.JPEG");
  Write("notes.txt");
  // A folder is not a picture.
  std::filesystem::create_directories(folder_ + "/c.png");
  FolderPictures pictures(folder_, absl::ZeroDuration());
  EXPECT_TRUE(pictures.Check().ok());
  std::string file;
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, a);
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, b);
  EXPECT_FALSE(pictures.Next(&file));
}

TEST_F(FolderPicturesTest, TakesFoldersOfItsFoldersIfRecursive) {
  for (const char* name : {"/b", "/b/c", "/.hidden"}) {
    std::filesystem::create_directories(folder_ + name);
  }
  const std::string deep = Write("b/c/deep.png"), inner = Write("b/inner.png"),
                    own = Write("own.png");
  Write(".hidden/no.png");
  Write("b/.no.png");
  for (const bool recursive : {true, false}) {
    FolderPictures pictures(folder_, absl::ZeroDuration(), recursive);
    std::vector<std::string> files;
    for (std::string file; pictures.Next(&file);) files.push_back(file);
    EXPECT_EQ(files, recursive ? std::vector<std::string>({deep, inner, own})
                               : std::vector<std::string>({own}));
  }
}

TEST_F(FolderPicturesTest, TakesPicturesByContentAndNoHiddenFiles) {
  const std::string jpeg = "\xFF\xD8\xFF\xE0", png = "\x89PNG\r\n\x1A\n";
  const std::string a = Write("a", jpeg), b = Write("b.jfif", jpeg),
                    c = Write("c.JPE", jpeg), d = Write("d.bin", png);
  Write("._a.jpg", jpeg);
  Write(".hidden.png", png);
  Write("e.gif", "GIF89a");
  Write("f.txt", "");
  // This file is not skipped, so that the server reports an error.
  const std::string empty = Write("g.jpg", "");
  FolderPictures pictures(folder_, absl::ZeroDuration());
  std::string file;
  for (const std::string& expected : {a, b, c, d, empty}) {
    ASSERT_TRUE(pictures.Next(&file));
    EXPECT_EQ(file, expected);
  }
  EXPECT_FALSE(pictures.Next(&file));
}

TEST_F(FolderPicturesTest, WaitsForWhatComes) {
  const std::string first = Write("first.png");
  FolderPictures pictures(folder_, kTestPatience);
  std::string file;
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, first);
  const std::string second = Write("second.png");
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, second);
  std::thread stopper([&pictures] { pictures.Stop(); });
  EXPECT_FALSE(pictures.Next(&file));
  stopper.join();
}

TEST_F(FolderPicturesTest, AFolderMustBeThere) {
  FolderPictures pictures(folder_ + "/none", absl::ZeroDuration());
  EXPECT_EQ(pictures.Check().code(), absl::StatusCode::kNotFound);
  std::string file;
  EXPECT_FALSE(pictures.Next(&file));
}

TEST(ListedPicturesTest, AreLinesButEmptyOnes) {
  std::istringstream lines("a.png\n\nb c.png");
  ListedPictures pictures(&lines);
  std::string file;
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, "a.png");
  ASSERT_TRUE(pictures.Next(&file));
  EXPECT_EQ(file, "b c.png");
  EXPECT_FALSE(pictures.Next(&file));
}

}  // namespace
}  // namespace sfmamba::client
