#include "client/eval/coco_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A picture of 64 x 48 pixels with one box of 20 x 15 pixels, and two
// categories.
constexpr char kFile[] =
    R"({"images": [{"id": 1, "file_name": "1.png", "width": 64, "height": 48}],)"
    R"( "annotations": [{"id": 5, "image_id": 1, "category_id": 2,)"
    R"( "bbox": [10, 10, 20, 15], "segmentation": []}],)"
    R"( "categories": [{"id": 2, "name": "cat", "supercategory": "none"},)"
    R"( {"id": 3, "name": "dog", "supercategory": "none"}]})";

class CocoFileTest : public testing::Test {
 protected:
  CocoFileTest()
      : folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/images");
  }

  absl::StatusOr<CocoFile> Read(const std::string& text) {
    std::ofstream(folder_ + "/a.json") << text;
    return ReadCocoFile(folder_ + "/a.json", {folder_ + "/images"});
  }

  // Reads kFile after replacing `from` with `to`.
  absl::StatusOr<CocoFile> ReadWith(const std::string& from,
                                    const std::string& to) {
    EXPECT_THAT(kFile, HasSubstr(from));
    return Read(absl::StrReplaceAll(kFile, {{from, to}}));
  }

  std::string Error(const std::string& from, const std::string& to) {
    const absl::Status status = ReadWith(from, to).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << to << ": " << status;
    return std::string(status.message());
  }

  // Reads kFile with this segmentation. Returns the area of the object's mask,
  // or -1 if the object has no mask.
  int64_t Area(const std::string& segmentation) {
    const auto file =
        ReadWith("\"segmentation\": []", "\"segmentation\": " + segmentation);
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return -2;
    const CocoObject& object = file->pictures[0].objects.at(0);
    left_out_ = file->left_out;
    return object.mask ? object.mask->Area() : -1;
  }

  const std::string folder_;
  std::string left_out_;
};

// Each case in contents.json is a change of kFile and the expected result.
// tests/tools/coco_files_test.py reads the same cases, so that the Python code
// for training reads COCO files in the same way.
TEST_F(CocoFileTest, ContentsAreReadAsTrainingReadsThem) {
  std::ifstream cases("tests/testdata/coco/contents.json");
  for (const json& each : json::parse(cases)) {
    SCOPED_TRACE(each.dump());
    json root = json::parse(kFile);
    for (const auto& [pointer, value] : each["set"].items()) {
      root[json::json_pointer(pointer)] = value;
    }
    const auto file = Read(root.dump());
    if (each.contains("refused")) {
      EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << file.status();
      continue;
    }
    ASSERT_TRUE(file.ok()) << file.status();
    const std::vector<CocoObject>& objects = file->pictures[0].objects;
    if (each.contains("nothing_left")) {
      EXPECT_TRUE(objects.empty());
      continue;
    }
    ASSERT_EQ(objects.size(), 1u);
    const CocoBox& box = objects[0].box;
    EXPECT_EQ(json({box.x, box.y, box.x + box.width, box.y + box.height}),
              each["box"]);
    EXPECT_EQ(objects[0].mask.has_value(), each["mask"].get<bool>());
  }
}

TEST_F(CocoFileTest, AnnotationsNeedNoIds) {
  const auto file = ReadWith("\"id\": 5, ", "");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->pictures[0].objects.size(), 1);
}

TEST_F(CocoFileTest, WholeNumbersMayHaveAPoint) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"\"id\": 1,", "\"id\": 1.0,"},
           {"\"image_id\": 1", "\"image_id\": 1.0"},
           {"\"category_id\": 2", "\"category_id\": 2e0"},
           {"\"width\": 64", "\"width\": 64.0"}}) {
    const auto file = ReadWith(from, to);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->pictures[0].width, 64);
    EXPECT_EQ(file->pictures[0].objects.size(), 1u);
    EXPECT_EQ(file->left_out, "");
  }
}

TEST_F(CocoFileTest, WhatIsNoWholeNumberIsNamed) {
  EXPECT_EQ(Error("\"id\": 1,", "\"id\": 1.5,"),
            "a.json: images[0].id: got 1.5, expected a whole number");
  EXPECT_EQ(Error("\"image_id\": 1", "\"image_id\": \"1\""),
            "a.json: annotations[0].image_id: got \"1\", expected a whole "
            "number");
  EXPECT_THAT(Error("\"category_id\": 2", "\"category_id\": true"),
              HasSubstr("annotations[0].category_id: got true"));
  EXPECT_THAT(Error("\"id\": 1,", "\"id\": 1e300,"), HasSubstr("images[0].id"));
  EXPECT_THAT(Error("\"width\": 64", "\"width\": 0"),
              HasSubstr("images[0].width: got 0, expected a whole number, 1 "));
  EXPECT_THAT(Error("[10, 10, 20, 15]", "[10, 10, 20]"),
              HasSubstr("annotations[0].bbox: expected x, y, width and"));
  EXPECT_THAT(Error("[10, 10, 20, 15]", "[10, 10, 20, \"a\"]"),
              HasSubstr("annotations[0].bbox: got [10,10,20,\"a\"]"));
  EXPECT_THAT(Error("\"bbox\"", "\"box\""),
              HasSubstr("annotations[0]: has no \"bbox\""));
}

TEST_F(CocoFileTest, WhatIsThereTwiceIsNamed) {
  EXPECT_EQ(Error("}], \"annotations\"",
                  R"(}, {"id": 1.0, "file_name": "2.png"}], "annotations")"),
            absl::StrCat("a.json: images[1]: '", folder_,
                         "/images/2.png' has the id 1, which '", folder_,
                         "/images/1.png' has too"));
  EXPECT_EQ(Error("\"id\": 3", "\"id\": 2"),
            "a.json: categories[1]: 'dog' has the id 2, which 'cat' has too");
  EXPECT_EQ(Error("\"name\": \"dog\"", "\"name\": \"cat\""),
            "a.json: categories[1]: id 3 has the name 'cat', which id 2 has "
            "too");
}

TEST_F(CocoFileTest, UnknownIdsAreNamed) {
  EXPECT_EQ(Error("\"image_id\": 1", "\"image_id\": 9"),
            "a.json: annotations[0]: image_id 9 is not in \"images\"");
  EXPECT_EQ(Error("\"category_id\": 2", "\"category_id\": 9"),
            "a.json: annotations[0]: category_id 9 is not in \"categories\"");
}

TEST_F(CocoFileTest, AParentWithoutObjectsIsNoCategory) {
  // Roboflow gives the parent category the project's name. A category may have
  // this name too.
  for (const std::string name : {"pets", "cat"}) {
    const auto file = Read(absl::StrReplaceAll(
        kFile, {{"none", name},
                {"\"categories\": [",
                 absl::StrCat(R"("categories": [{"id": 0, "name": ")", name,
                              R"(", "supercategory": "none"}, )")}}));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->categories.size(), 2u);
    EXPECT_EQ(file->categories[0].id, 2);
    EXPECT_EQ(file->left_out, absl::StrCat("a.json: left out category '", name,
                                           "' (a supercategory without "
                                           "objects)"));
  }
}

TEST_F(CocoFileTest, BoxesAreClipped) {
  const auto file = ReadWith("[10, 10, 20, 15]", "[-5, 40, 20, 30]");
  ASSERT_TRUE(file.ok()) << file.status();
  const CocoBox& box = file->pictures[0].objects.at(0).box;
  EXPECT_EQ(box.x, 0);
  EXPECT_EQ(box.width, 15);
  EXPECT_EQ(box.height, 8);
  EXPECT_EQ(file->left_out, "a.json: clipped 1 box to the picture");
}

TEST_F(CocoFileTest, BoxesWithNothingInThePictureAreLeftOut) {
  for (const std::string box :
       {"[70, 10, 20, 15]", "[10, 10, 0, 15]", "[10, 10, -4, 15]",
        "[10, -20, 20, 15]", "[64, 10, 20, 15]"}) {
    const auto file = ReadWith("[10, 10, 20, 15]", box);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->pictures[0].objects.empty());
    EXPECT_EQ(file->left_out,
              "a.json: left out 1 box with no pixel in the picture");
  }
}

TEST_F(CocoFileTest, ThePictureTellsItsSizeIfTheFileDoesNot) {
  std::ofstream(folder_ + "/images/1.png", std::ios::binary)
      << server::EncodePng(server::Gradient(15, 20));
  const auto file = ReadWith(", \"width\": 64, \"height\": 48", "");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->pictures[0].width, 15);
  EXPECT_EQ(file->pictures[0].objects.at(0).box.width, 5);
}

TEST_F(CocoFileTest, OnlyOneOfManyFormsIsNoMask) {
  EXPECT_EQ(Area("[]"), -1);
  EXPECT_EQ(Area("[[]]"), -1);
  EXPECT_EQ(Area("null"), -1);
  EXPECT_EQ(Area("[[1, 1, 5, 5]]"), -1);
  EXPECT_EQ(left_out_, "a.json: left out 1 polygon of fewer than 3 points");
}

TEST_F(CocoFileTest, MasksArePolygonsOrRunLengths) {
  EXPECT_EQ(Area("[[10, 10, 30, 10, 30, 25, 10, 25]]"), 300);
  EXPECT_EQ(Area("[[10, 10, 30, 10, 30, 25, 10, 25], [1, 1, 5, 5]]"), 300);
  EXPECT_EQ(Area(R"({"size": [48.0, 64.0], "counts": [100, 9, 2963]})"), 9);
  EXPECT_EQ(Area(R"({"size": [48, 64], "counts": [100.0, 9, 2963]})"), 9);
  EXPECT_EQ(Area(R"({"size": [48, 64], "counts": "PP3"})"), 0);
}

TEST_F(CocoFileTest, MalformedMasksAreNamed) {
  const auto error = [this](const std::string& segmentation) {
    return Error("\"segmentation\": []", "\"segmentation\": " + segmentation);
  };
  EXPECT_THAT(error("[[1, 2, 3, 4, 5, 6, 7]]"),
              HasSubstr("annotations[0].segmentation[0]: got 7 numbers"));
  EXPECT_THAT(error("[1, 2, 3, 4, 5, 6]"),
              HasSubstr("segmentation[0]: got 1, expected a list of numbers"));
  EXPECT_THAT(error("\"x\""), HasSubstr("expected polygons or run lengths"));
  EXPECT_THAT(error(R"({"size": [64, 48], "counts": [3072]})"),
              HasSubstr("run lengths of 48x64 pixels, the picture has 64x48"));
  EXPECT_THAT(error(R"({"size": [48, 64], "counts": [3000]})"),
              HasSubstr("counts: runs of 3000 pixels, expected 3072"));
  EXPECT_THAT(error(R"({"size": [48, 64], "counts": [-1, 3073]})"),
              HasSubstr("counts: a run of -1 pixels"));
  EXPECT_THAT(error(R"({"size": [48, 64]})"), HasSubstr("has no \"counts\""));
}

TEST_F(CocoFileTest, ACrowdsBoxReplacesAMalformedMask) {
  const auto file = ReadWith(
      "\"segmentation\": []",
      R"("iscrowd": 1, "segmentation": {"size": [48, 64], "counts": [1]})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->pictures[0].objects.at(0).crowd);
  EXPECT_EQ(file->pictures[0].objects[0].mask->Area(), 300);
  EXPECT_EQ(file->left_out,
            "a.json: took the boxes of 1 crowd with malformed masks");
}

TEST_F(CocoFileTest, PicturesLieBelowTheirFolder) {
  std::ofstream(folder_ + "/images/1.png") << "x";
  for (const std::string name :
       {"1.png", "images/1.png", "./1.png", R"(images\\1.png)", "a/../1.png"}) {
    const auto file = ReadWith("\"1.png\"", absl::StrCat("\"", name, "\""));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->pictures[0].path, folder_ + "/images/1.png") << name;
  }
  for (const std::string name : {"../a.json", "/etc/passwd", "images/../../x",
                                 R"(..\\a.json)", "", "."}) {
    EXPECT_THAT(Error("\"1.png\"", absl::StrCat("\"", name, "\"")),
                HasSubstr("images[0]: file_name: got '"))
        << name;
  }
}

}  // namespace
}  // namespace sfmamba::client
