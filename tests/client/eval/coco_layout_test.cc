#include "client/eval/coco_layout.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace sfmamba::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

// Creates a folder with these files and returns its path. Every .json file
// except info.json contains a dataset.
fs::path LayOut(const json& files) {
  const fs::path folder = fs::path(testing::TempDir()) / "layout";
  fs::remove_all(folder);
  for (const std::string name : files) {
    const fs::path file = folder / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << (absl::EndsWith(name, "info.json")
                                ? "{}"
                                : R"({"images": [], "annotations": [],)"
                                  R"( "categories": []})");
  }
  return folder;
}

// Returns the first of the layout's folders that contains the picture, relative
// to `root`. Returns "none" if no folder does.
std::string PlaceOf(const std::string& picture, const CocoLayout& layout,
                    const fs::path& root) {
  for (const std::string& folder : layout.pictures) {
    if (!fs::exists(fs::path(folder) / picture)) continue;
    const std::string place = fs::path(folder).lexically_relative(root);
    return place == "." ? "" : place;
  }
  return "none";
}

// tests/tools/coco_files_test.py checks that training finds the same files.
TEST(CocoLayoutTest, EachLayoutIsFoundAsTrainingFindsIt) {
  std::ifstream file("tests/testdata/coco/layouts.json");
  for (const json& each : json::parse(file)) {
    SCOPED_TRACE(each.dump());
    const fs::path folder = LayOut(each["files"]);
    const absl::StatusOr<CocoLayout> layout = FindCocoLayout(folder);
    if (each.contains("refused")) {
      for (const std::string name : each["refused"]) {
        EXPECT_THAT(std::string(layout.status().message()), HasSubstr(name));
      }
      continue;
    }
    ASSERT_TRUE(layout.ok()) << layout.status();
    const bool held_out = each["held_out"].is_string();
    const std::string expected = each[held_out ? "held_out" : "train"];
    EXPECT_EQ(layout->annotations, (folder / expected).string());
    if (!held_out) {
      EXPECT_EQ(PlaceOf("1.jpg", *layout, folder),
                each["pictures"].get<std::string>());
    }
  }
}

TEST(CocoLayoutTest, APartForTestsComesBeforeOneToLearnFrom) {
  const fs::path folder =
      LayOut({"train/_annotations.coco.json", "test/_annotations.coco.json",
              "train/1.jpg", "test/1.jpg"});
  const absl::StatusOr<CocoLayout> layout = FindCocoLayout(folder);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->annotations,
            (folder / "test/_annotations.coco.json").string());
  EXPECT_EQ(PlaceOf("1.jpg", *layout, folder), "test");
}

TEST(CocoLayoutTest, PicturesAloneAreNoDataset) {
  const absl::StatusOr<CocoLayout> layout =
      FindCocoLayout(LayOut({"train/1.jpg", "info.json"}));
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->annotations, "");
}

}  // namespace
}  // namespace sfmamba::client
