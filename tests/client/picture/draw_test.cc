#include "client/picture/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/picture.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using Color = std::array<uint8_t, 3>;

constexpr Color kGrey = {100, 100, 100};
constexpr Color kWhite = {255, 255, 255};

Picture GreyPicture(int width, int height) {
  Picture picture;
  picture.width = width;
  picture.height = height;
  picture.data.assign(size_t{3} * width * height, kGrey[0]);
  return picture;
}

Color At(const Picture& picture, int x, int y) {
  const uint8_t* pixel =
      &picture.data[size_t{3} * (size_t{1} * y * picture.width + x)];
  return {pixel[0], pixel[1], pixel[2]};
}

Color Blended(const Color& color) {
  Color blended;
  for (int c = 0; c < 3; ++c) blended[c] = (kGrey[c] + color[c] + 1) / 2;
  return blended;
}

// Adds an object whose mask has all pixels of its box. The box's sides are
// whole numbers.
v1::Detection* AddObject(int class_id, int left, int top, int width, int height,
                         v1::DetectResult* result) {
  v1::Detection* detection = result->add_detections();
  detection->set_class_id(class_id);
  detection->set_label("cup");
  detection->set_score(0.5);
  detection->mutable_box()->set_x_min(left);
  detection->mutable_box()->set_y_min(top);
  detection->mutable_box()->set_x_max(left + width);
  detection->mutable_box()->set_y_max(top + height);
  detection->set_png_crop(
      server::EncodePng(width, height, {/*grey*/ 0, 1},
                        std::string((width + 7) / 8 * height, '\xFF')));
  return detection;
}

v1::DetectResult ResultFor(const Picture& picture) {
  v1::DetectResult result;
  result.set_image_width(picture.width);
  result.set_image_height(picture.height);
  return result;
}

// Returns a result with a raw map. `data` has one byte per pixel.
v1::SegmentResult MapOf(int width, int height, const std::string& data) {
  v1::SegmentResult result;
  result.set_width(width);
  result.set_height(height);
  result.mutable_raw()->set_width(width);
  result.mutable_raw()->set_height(height);
  result.mutable_raw()->set_bytes_per_pixel(1);
  result.mutable_raw()->set_data(data);
  return result;
}

Picture Draw(const Picture& picture, const v1::DetectResult& result) {
  const absl::StatusOr<Picture> drawn = DrawDetections(picture, result);
  EXPECT_TRUE(drawn.ok()) << drawn.status();
  return drawn.value_or(Picture());
}

Picture Draw(const Picture& picture, const v1::SegmentResult& result) {
  const absl::StatusOr<Picture> drawn = DrawSegmentation(picture, result);
  EXPECT_TRUE(drawn.ok()) << drawn.status();
  return drawn.value_or(Picture());
}

// Returns how many pixels of a rectangle pass `test`. Parts of the rectangle
// outside the picture are ignored.
template <typename Test>
int Count(const Picture& picture, int left, int top, int right, int bottom,
          Test test) {
  int count = 0;
  for (int y = std::max(0, top); y < std::min(bottom, picture.height); ++y) {
    for (int x = std::max(0, left); x < std::min(right, picture.width); ++x) {
      count += test(At(picture, x, y));
    }
  }
  return count;
}

bool Contains(const Picture& picture, const Color& color, int left, int top,
              int right, int bottom) {
  return Count(picture, left, top, right, bottom,
               [&](const Color& pixel) { return pixel == color; }) > 0;
}

// The pixels of thin letters are not exactly white or black. kGrey is neither
// light nor dark.
bool IsLight(const Color& pixel) { return pixel[1] > 150 && pixel[2] > 150; }
bool IsDark(const Color& pixel) {
  return pixel[0] < 90 && pixel[1] < 90 && pixel[2] < 90;
}

// Returns true if all pixels outside the rectangle are unchanged.
bool OutsideIsUnchanged(const Picture& drawn, int left, int top, int right,
                        int bottom) {
  for (int y = 0; y < drawn.height; ++y) {
    for (int x = 0; x < drawn.width; ++x) {
      const bool inside = x >= left && x < right && y >= top && y < bottom;
      if (!inside && At(drawn, x, y) != kGrey) return false;
    }
  }
  return true;
}

TEST(ClassColorTest, FollowsTheRule) {
  EXPECT_EQ(ClassColor(0), (Color{128, 0, 0}));
  EXPECT_EQ(ClassColor(1), (Color{0, 128, 0}));
  EXPECT_EQ(ClassColor(2), (Color{128, 128, 0}));
  EXPECT_EQ(ClassColor(6), (Color{128, 128, 128}));
  EXPECT_EQ(ClassColor(7), (Color{64, 0, 0}));
  EXPECT_EQ(ClassColor(79), (Color{32, 64, 0}));
  EXPECT_EQ(ClassColor(149), (Color{0, 224, 128}));
}

TEST(ClassColorTest, AllDiffer) {
  std::set<Color> colors;
  for (int i = 0; i < 65536; ++i) colors.insert(ClassColor(i));
  EXPECT_EQ(colors.size(), 65536);
}

TEST(DrawDetectionsTest, BlendsTheMaskAndOutlinesIt) {
  const Picture picture = GreyPicture(200, 150);
  v1::DetectResult result = ResultFor(picture);
  AddObject(0, 50, 60, 80, 50, &result);
  const Picture drawn = Draw(picture, result);
  EXPECT_EQ(drawn.width, 200);
  EXPECT_EQ(drawn.height, 150);
  const Color color = ClassColor(0);
  EXPECT_EQ(At(drawn, 90, 85), Blended(color));
  for (int x : {50, 90, 129}) EXPECT_EQ(At(drawn, x, 109), color) << x;
  for (int y : {60, 85, 109}) EXPECT_EQ(At(drawn, 129, y), color) << y;
  // The label is above the box. The line around the box may extend one pixel
  // beyond the box.
  EXPECT_TRUE(OutsideIsUnchanged(drawn, 49, 40, 131, 111));
  EXPECT_GT(Count(drawn, 50, 40, 130, 60, IsLight), 20);
}

TEST(DrawDetectionsTest, TheMaskNeedNotFillTheBox) {
  const Picture picture = GreyPicture(200, 150);
  v1::DetectResult result = ResultFor(picture);
  v1::Detection* detection = AddObject(1, 50, 60, 80, 50, &result);
  // The left half of the mask is set. Each row has 10 bytes, of which the first
  // 5 are set.
  std::string rows;
  for (int y = 0; y < 50; ++y) {
    rows += std::string(5, '\xFF') + std::string(5, '\0');
  }
  detection->set_png_crop(server::EncodePng(80, 50, {0, 1}, rows));
  const Picture drawn = Draw(picture, result);
  EXPECT_EQ(At(drawn, 70, 85), Blended(ClassColor(1)));
  // The mask ends at x = 89. Its last pixels are its outline, so they have
  // exactly the class's colour. Pixels of the box that are not in the mask are
  // unchanged.
  EXPECT_EQ(At(drawn, 89, 85), ClassColor(1));
  EXPECT_EQ(At(drawn, 90, 85), kGrey);
  EXPECT_EQ(At(drawn, 110, 85), kGrey);
}

TEST(DrawDetectionsTest, ABoxWithoutMaskIsAFrame) {
  const Picture picture = GreyPicture(200, 150);
  v1::DetectResult result = ResultFor(picture);
  AddObject(1, 50, 60, 80, 50, &result)->clear_mask();
  const Picture drawn = Draw(picture, result);
  EXPECT_EQ(At(drawn, 90, 85), kGrey);
  EXPECT_EQ(At(drawn, 50, 85), ClassColor(1));
  EXPECT_EQ(At(drawn, 129, 85), ClassColor(1));
  EXPECT_EQ(At(drawn, 90, 109), ClassColor(1));
}

TEST(DrawDetectionsTest, TheBestIsOnTop) {
  const Picture picture = GreyPicture(200, 150);
  v1::DetectResult result = ResultFor(picture);
  // The object with the highest score comes first.
  AddObject(0, 50, 60, 80, 50, &result);
  AddObject(1, 90, 60, 80, 50, &result);
  const Picture drawn = Draw(picture, result);
  Color both = Blended(ClassColor(1));
  for (int c = 0; c < 3; ++c) both[c] = (both[c] + ClassColor(0)[c] + 1) / 2;
  EXPECT_EQ(At(drawn, 110, 85), both);
  // This pixel is on the lower line of both boxes. The first object is on top.
  EXPECT_EQ(At(drawn, 110, 109), ClassColor(0));
}

TEST(DrawDetectionsTest, LabelsStayInThePicture) {
  const Picture picture = GreyPicture(200, 150);
  for (const auto& [left, top] : std::vector<std::pair<int, int>>{
           {0, 0}, {190, 0}, {0, 140}, {190, 140}}) {
    v1::DetectResult result = ResultFor(picture);
    AddObject(0, left, top, 10, 10, &result);
    const Picture drawn = Draw(picture, result);
    const int painted = Count(drawn, 0, 0, 200, 150, [](const Color& pixel) {
      return pixel == ClassColor(0);
    });
    // The text "cup 0.50" in letters of 8 pixels takes about 75 x 14 pixels.
    EXPECT_GT(painted, 500) << left << ", " << top;
    EXPECT_GT(Count(drawn, 0, 0, 200, 150, IsLight), 20) << left << ", " << top;
  }
}

TEST(DrawDetectionsTest, LabelsAvoidEachOther) {
  const Picture picture = GreyPicture(400, 300);
  v1::DetectResult one = ResultFor(picture);
  AddObject(0, 100, 100, 150, 100, &one);
  v1::DetectResult two = one;
  AddObject(1, 100, 100, 150, 100, &two);
  const Picture with_one = Draw(picture, one);
  const Picture with_two = Draw(picture, two);
  // Both objects have the same box. The first label is above this box. The
  // second label must not cover it.
  for (int y = 85; y < 98; ++y) {
    for (int x = 100; x < 150; ++x) {
      EXPECT_EQ(At(with_one, x, y), At(with_two, x, y)) << x << ", " << y;
    }
  }
}

TEST(DrawDetectionsTest, TextGrowsWithThePicture) {
  const auto label_pixels = [](int width, int height) {
    const Picture picture = GreyPicture(width, height);
    v1::DetectResult result = ResultFor(picture);
    AddObject(0, width / 4, height / 2, width / 2, height / 4, &result)
        ->clear_mask();
    const Picture drawn = Draw(picture, result);
    // Counts the rows of the label above the box.
    int rows = 0;
    while (At(drawn, width / 4 + 3, height / 2 - 3 - rows) != kGrey) ++rows;
    return rows;
  };
  EXPECT_GE(label_pixels(200, 150), 10);
  const int large = label_pixels(4000, 3000);
  EXPECT_GE(large, 80);
  EXPECT_LE(large, 250);
}

TEST(DrawDetectionsTest, AnySizeOfPictureWorks) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 300}, {16384, 1}, {7, 5}}) {
    const Picture picture = GreyPicture(width, height);
    v1::DetectResult result = ResultFor(picture);
    AddObject(0, 0, 0, width, height, &result);
    const Picture drawn = Draw(picture, result);
    EXPECT_EQ(drawn.width, width);
    EXPECT_EQ(drawn.height, height);
    EXPECT_NE(drawn.data, picture.data);
  }
}

TEST(DrawDetectionsTest, StrangeBoxesAndLabelsDoNoHarm) {
  const Picture picture = GreyPicture(60, 40);
  v1::DetectResult result = ResultFor(picture);
  for (const float side : {NAN, INFINITY, -INFINITY, 1e30f, -5.0f, 60.0f}) {
    for (int field = 0; field < 4; ++field) {
      v1::Detection* detection = AddObject(field, 10, 10, 20, 20, &result);
      detection->clear_mask();
      detection->set_label(std::string(1000, '\xC3'));
      detection->set_score(side);
      v1::BoundingBox* box = detection->mutable_box();
      if (field == 0) box->set_x_min(side);
      if (field == 1) box->set_y_min(side);
      if (field == 2) box->set_x_max(side);
      if (field == 3) box->set_y_max(side);
    }
  }
  result.mutable_detections(0)->set_class_id(-1);
  result.mutable_detections(1)->set_class_id(INT32_MAX);
  EXPECT_EQ(Draw(picture, result).width, 60);
}

TEST(DrawDetectionsTest, NoObjectChangesNothing) {
  const Picture picture = GreyPicture(60, 40);
  EXPECT_EQ(Draw(picture, ResultFor(picture)).data, picture.data);
}

TEST(DrawDetectionsTest, RefusesWhatDoesNotFit) {
  const Picture picture = GreyPicture(60, 40);
  v1::DetectResult result = ResultFor(GreyPicture(40, 60));
  absl::Status status = DrawDetections(picture, result).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("about 40 x 60 pixels"));

  result = ResultFor(picture);
  AddObject(0, 10, 10, 20, 20, &result);
  AddObject(0, 10, 10, 20, 20, &result)->set_png_crop("no mask");
  status = DrawDetections(picture, result).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("detection 1: mask: this is text"));

  v1::CocoRle* rle = result.mutable_detections(1)->mutable_rle();
  rle->set_width(40);
  rle->set_height(60);
  status = DrawDetections(picture, result).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("detection 1: the answer is about"));
}

TEST(DrawHeatMapTest, IsRedAndOpaqueWhereTheClassWasSeen) {
  const Picture picture = GreyPicture(200, 100);
  v1::ClassifyResult result;
  std::string map(200 * 100, '\0');
  for (int y = 50; y < 100; ++y) map[200 * y + 150] = '\xFF';
  result.mutable_heat_map()->set_class_id(3);
  result.mutable_heat_map()->set_png(
      server::EncodePng(200, 100, {/*grey*/ 0, 8}, map));
  const auto drawn = DrawHeatMap(picture, result);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_EQ(At(*drawn, 149, 80), kGrey);
  const Color seen = At(*drawn, 150, 80);
  EXPECT_GT(seen[0], seen[1]);
  EXPECT_GT(seen[0], seen[2]);
  // This pixel is in the label's background. The label is in the corner of the
  // picture.
  EXPECT_EQ(At(*drawn, 1, 1), kWhite);
}

TEST(DrawHeatMapTest, RefusesWhatIsOfAnotherSize) {
  v1::ClassifyResult result;
  EXPECT_EQ(DrawHeatMap(GreyPicture(2, 2), result).status().code(),
            absl::StatusCode::kDataLoss);
  result.mutable_heat_map()->set_png(
      server::EncodePng(2, 1, {/*grey*/ 0, 8}, std::string(2, 'a')));
  EXPECT_THAT(
      std::string(DrawHeatMap(GreyPicture(2, 2), result).status().message()),
      HasSubstr("2 x 1"));
}

TEST(DrawSegmentationTest, BlendsEachClassAndAddsALegend) {
  const Picture picture = GreyPicture(200, 100);
  // The upper half has class 3, the next 40 rows have class 1, and the last 10
  // rows have no class.
  v1::SegmentResult result =
      MapOf(200, 100,
            std::string(200 * 50, '\3') + std::string(200 * 40, '\1') +
                std::string(200 * 10, '\xFF'));
  const Picture drawn = Draw(picture, result);
  EXPECT_EQ(drawn.width, 200);
  EXPECT_GT(drawn.height, 100 + 20);  // The legend has two lines.
  EXPECT_EQ(At(drawn, 0, 0), Blended(ClassColor(3)));
  EXPECT_EQ(At(drawn, 199, 49), Blended(ClassColor(3)));
  EXPECT_EQ(At(drawn, 0, 50), Blended(ClassColor(1)));
  EXPECT_EQ(At(drawn, 199, 99), kGrey);
  // The legend begins with the largest class.
  EXPECT_TRUE(Contains(drawn, ClassColor(3), 0, 100, 200, 112));
  EXPECT_TRUE(Contains(drawn, ClassColor(1), 0, 114, 200, drawn.height));
  EXPECT_FALSE(Contains(drawn, ClassColor(3), 0, 114, 200, drawn.height));
  EXPECT_FALSE(Contains(drawn, ClassColor(0), 0, 100, 200, drawn.height));
  EXPECT_GT(Count(drawn, 20, 100, 200, drawn.height, IsDark), 40);
}

TEST(DrawSegmentationTest, LabelsComeFromTheAreas) {
  const Picture picture = GreyPicture(200, 100);
  v1::SegmentResult result = MapOf(200, 100, std::string(200 * 100, '\3'));
  const Picture without = Draw(picture, result);
  v1::ClassArea* area = result.add_areas();
  area->set_class_id(3);
  area->set_label("floor");
  const Picture with = Draw(picture, result);
  EXPECT_NE(with.data, without.data);
  area->set_label("class 3");
  EXPECT_EQ(Draw(picture, result).data, without.data);
}

TEST(DrawSegmentationTest, TheBackgroundIsNotPainted) {
  const Picture picture = GreyPicture(200, 100);
  v1::SegmentResult result = MapOf(
      200, 100, std::string(200 * 60, '\0') + std::string(200 * 40, '\1'));
  v1::ClassArea* area = result.add_areas();
  EXPECT_EQ(At(Draw(picture, result), 0, 0), Blended(ClassColor(0)));
  area->set_label("background");
  const Picture drawn = Draw(picture, result);
  EXPECT_EQ(At(drawn, 0, 0), kGrey);
  EXPECT_EQ(At(drawn, 0, 60), Blended(ClassColor(1)));
  EXPECT_FALSE(
      Contains(drawn, ClassColor(0), 0, 100, drawn.width, drawn.height));
}

TEST(DrawSegmentationTest, TheLegendOfAnUprightPictureIsBesideIt) {
  const Picture picture = GreyPicture(100, 200);
  const Picture drawn =
      Draw(picture, MapOf(100, 200, std::string(100 * 200, '\3')));
  EXPECT_EQ(drawn.height, 200);
  EXPECT_GT(drawn.width, 150);
  EXPECT_EQ(At(drawn, 99, 199), Blended(ClassColor(3)));
  EXPECT_EQ(At(drawn, 100, 199), kWhite);
  EXPECT_TRUE(Contains(drawn, ClassColor(3), 100, 0, drawn.width, 20));
}

TEST(DrawSegmentationTest, NoClassMeansNoLegend) {
  const Picture picture = GreyPicture(60, 40);
  const Picture drawn =
      Draw(picture, MapOf(60, 40, std::string(60 * 40, '\xFF')));
  EXPECT_EQ(drawn.data, picture.data);
  EXPECT_EQ(drawn.height, 40);
}

TEST(DrawSegmentationTest, AnySizeOfPictureWorks) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{1, 1}, {1, 300}, {16384, 1}, {7, 5}}) {
    const Picture picture = GreyPicture(width, height);
    const Picture drawn =
        Draw(picture, MapOf(width, height, std::string(width * height, '\2')));
    EXPECT_EQ(At(drawn, width - 1, height - 1), Blended(ClassColor(2)));
    EXPECT_GE(drawn.width, width);
    EXPECT_GE(drawn.height, height);
  }
}

TEST(DrawSegmentationTest, TheLegendOfVeryManyClassesIsCut) {
  const Picture picture = GreyPicture(300, 200);
  v1::SegmentResult result = MapOf(300, 200, "");
  std::string data;
  // All pixels have different classes.
  for (int i = 0; i < 300 * 200; ++i) {
    data += static_cast<char>(i);
    data += static_cast<char>(i >> 8);
  }
  result.mutable_raw()->set_bytes_per_pixel(2);
  result.mutable_raw()->set_data(data);
  const Picture drawn = Draw(picture, result);
  EXPECT_LT(drawn.height, 1000);
}

TEST(DrawSegmentationTest, RefusesWhatDoesNotFit) {
  const Picture picture = GreyPicture(60, 40);
  const absl::Status status =
      DrawSegmentation(picture, MapOf(40, 60, std::string(60 * 40, '\1')))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("about 40 x 60 pixels"));
  EXPECT_EQ(DrawSegmentation(picture, v1::SegmentResult()).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace sfmamba::client
