#include "base/coco_rle.h"

#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/masks.h"
#include "tests/testing/encode_masks.h"
#include "tests/testing/fixture.h"

namespace sfmamba::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Mask WholeMask(int height, int width, std::vector<uint8_t> data) {
  Mask mask;
  mask.height = height;
  mask.width = width;
  mask.data = std::move(data);
  return mask;
}

// Returns the mask's value for each pixel of the picture, row by row.
std::vector<uint8_t> Pixels(const Mask& mask, int height, int width) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) pixels.push_back(mask.At(x, y));
  }
  return pixels;
}

TEST(RleTest, AgreesWithCocosOwnStrings) {
  const Fixture fixture("rle");
  const at::Tensor masks = fixture["masks"];
  const int height = masks.size(1), width = masks.size(2);
  for (int i = 0; i < masks.size(0); ++i) {
    const at::Tensor counts = fixture[absl::StrCat("counts.", i)];
    const at::Tensor bytes = fixture[absl::StrCat("string.", i)];
    const std::string expected(
        reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>()),
        bytes.numel());
    EXPECT_EQ(CompressCounts(absl::MakeConstSpan(counts.data_ptr<int64_t>(),
                                                 counts.numel())),
              expected)
        << i;
    const uint8_t* pixels = masks.data_ptr<uint8_t>() + i * height * width;
    const Mask mask =
        WholeMask(height, width, {pixels, pixels + height * width});
    EXPECT_EQ(EncodeRle(mask, 0, 0, height, width), expected) << i;
    const absl::StatusOr<Mask> decoded =
        DecodeRle(expected, height, width, ImageLimits());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(Pixels(*decoded, height, width), mask.data) << i;
    EXPECT_EQ(decoded->Area(), mask.Area());
  }
}

// Returns the string of a mask in which the pixels [begin, end) of each run are
// set.
std::string Written(std::vector<std::pair<int64_t, int64_t>> runs,
                    int64_t pixels) {
  RleWriter rle;
  for (const auto& [begin, end] : runs) rle.Add(begin, end);
  return rle.Finish(pixels);
}

TEST(RleWriterTest, ReadsAsItsComment) {
  EXPECT_EQ(Written({{3, 7}, {9, 10}}, 12), CompressCounts({3, 4, 2, 1, 2}));
}

TEST(RleWriterTest, BeginsWithZeroIfTheFirstPixelIsSet) {
  EXPECT_EQ(Written({{0, 5}}, 5), CompressCounts({0, 5}));
}

TEST(RleWriterTest, JoinsWhatAdjoins) {
  EXPECT_EQ(Written({{0, 2}, {2, 4}, {4, 5}}, 9), CompressCounts({0, 5, 4}));
  EXPECT_EQ(Written({{1, 1}, {3, 4}, {4, 4}, {4, 9}}, 9),
            CompressCounts({3, 6}));
}

TEST(RleWriterTest, NothingSetIsOneRun) {
  EXPECT_TRUE(RleWriter().empty());
  EXPECT_EQ(Written({}, 12), CompressCounts({12}));
  EXPECT_EQ(Written({}, 0), CompressCounts({0}));
}

TEST(RleWriterTest, WritesLongAndShrinkingRuns) {
  EXPECT_EQ(Written({{5, 1 << 30}, {(1 << 30) + 700, (1 << 30) + 701}},
                    (int64_t{1} << 30) + 702),
            CompressCounts({5, (1 << 30) - 5, 700, 1, 1}));
}

// Height and width of the picture, then left, top, height and width of the
// mask.
using Place = std::tuple<int, int, int, int, int, int>;

class RleRoundTripTest : public ::testing::TestWithParam<Place> {};

TEST_P(RleRoundTripTest, AMaskComesBackAtItsPlace) {
  const auto [height, width, left, top, rows, columns] = GetParam();
  std::mt19937 random(1);
  for (int percent : {0, 3, 50, 97, 100}) {
    Mask mask;
    mask.left = left - 2;
    mask.top = top - 1;
    mask.height = rows;
    mask.width = columns;
    std::vector<int> expected(height * width);
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        const bool set = random() % 100 < percent;
        mask.data.push_back(set);
        expected[(top + y) * width + left + x] = set;
      }
    }
    EXPECT_EQ(
        server::DecodeRle(EncodeRle(mask, 2, 1, height, width), height, width),
        expected)
        << percent << " %";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Places, RleRoundTripTest,
    ::testing::Values(Place{1, 1, 0, 0, 1, 1}, Place{7, 5, 0, 0, 7, 5},
                      Place{7, 5, 2, 3, 2, 2}, Place{7, 5, 0, 0, 0, 0},
                      Place{1, 200, 3, 0, 1, 190}, Place{200, 1, 0, 9, 191, 1},
                      Place{64, 64, 0, 0, 64, 64},
                      Place{65, 131, 1, 0, 65, 130},
                      Place{40, 150, 20, 0, 40, 129}));

TEST(RlePerClassTest, EachClassComesBack) {
  std::mt19937 random(2);
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 300}, {300, 1}, {33, 70}, {64, 129}}) {
    // The number of consecutive pixels of the map that get the same class. A
    // group of such pixels may continue in the next row.
    for (int blotch : {1, 7}) {
      std::vector<uint16_t> map;
      while (map.size() < height * width) {
        map.insert(map.end(), blotch, random() % 7 == 6 ? 300 : random() % 5);
      }
      map.resize(height * width);
      const std::vector<std::string> strings =
          EncodeRlePerClass(map, height, width, 7);
      ASSERT_EQ(strings.size(), 7);
      EXPECT_EQ(strings[5], "");
      for (int id = 0; id < 5; ++id) {
        std::vector<int> expected;
        int count = 0;
        for (const uint16_t label : map) {
          expected.push_back(label == id);
          count += label == id;
        }
        if (count == 0) {
          EXPECT_EQ(strings[id], "");
        } else {
          EXPECT_EQ(server::DecodeRle(strings[id], height, width), expected);
        }
      }
    }
  }
}

TEST(RlePerClassTest, ColumnsMayBeAddedAFewAtATime) {
  constexpr int kHeight = 33, kWidth = 200, kClasses = 5;
  std::mt19937 random(3);
  std::vector<uint16_t> map;
  while (map.size() < kHeight * kWidth) map.push_back(random() % 7);
  const std::vector<std::string> whole =
      EncodeRlePerClass(map, kHeight, kWidth, kClasses);
  for (int columns : {1, 64, 100, 1000}) {
    ClassRunLengths runs(kHeight, kWidth, kClasses);
    while (!runs.done()) runs.AddColumns(columns, map);
    for (int id = 0; id < kClasses; ++id) {
      EXPECT_GT(runs.bytes(id), 0);
      EXPECT_EQ(runs.Take(id), whole[id]) << columns << " columns";
    }
  }
}

// The masks have all densities, from no set pixel to only set pixels.
TEST(DecodeRleTest, ReversesTheEncoding) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int height = 1 + random() % 40, width = 1 + random() % 40;
    Mask mask = WholeMask(height, width, {});
    const int density = random() % 9;
    for (int k = 0; k < width * height; ++k) {
      mask.data.push_back(random() % 8 < density);
    }
    const absl::StatusOr<Mask> decoded = DecodeRle(
        EncodeRle(mask, 0, 0, height, width), height, width, ImageLimits());
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(Pixels(*decoded, height, width), mask.data);
  }
}

TEST(DecodeRleTest, KeepsTheSmallestRectangle) {
  // Pixels (2, 1) and (3, 2) are set in a picture of 4 rows and 5 columns.
  const absl::StatusOr<Mask> mask =
      DecodeRle(Written({{9, 10}, {14, 15}}, 20), 4, 5, ImageLimits());
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->left, 2);
  EXPECT_EQ(mask->top, 1);
  EXPECT_EQ(mask->width, 2);
  EXPECT_EQ(mask->height, 2);
  EXPECT_THAT(mask->data, ElementsAre(1, 0, 0, 1));
  EXPECT_FALSE(mask->At(1, 1));
  EXPECT_FALSE(mask->At(100, -100));
}

TEST(DecodeRleTest, NoPixelIsAnEmptyMask) {
  const absl::StatusOr<Mask> mask =
      DecodeRle(CompressCounts({20}), 4, 5, ImageLimits());
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->width, 0);
  EXPECT_EQ(mask->height, 0);
  EXPECT_EQ(mask->Area(), 0);
}

TEST(DecodeRleTest, RefusesWhatIsMalformed) {
  const std::string twenty = CompressCounts({20});
  ASSERT_TRUE(DecodeRle(twenty, 4, 5, ImageLimits()).ok());
  const auto expect_refused = [](int height, int width,
                                 const std::string& counts,
                                 const std::string& message) {
    const absl::Status status =
        DecodeRle(counts, height, width, ImageLimits()).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(message));
  };
  expect_refused(0, 5, "", "5 x 0 pixels");
  expect_refused(4, -5, twenty, "-5 x 4 pixels");
  expect_refused(10000, 10000, "0", "10000 x 10000 pixels");
  expect_refused(4, 5, "", "0 pixels, expected 20");
  expect_refused(4, 6, twenty, "20 pixels, expected 24");
  expect_refused(4, 4, twenty, "20 pixels, 16 are left");
  expect_refused(4, 5, CompressCounts({-1, 21}), "run 0 has -1");
  // From the fourth number on, a number is the difference to the run two places
  // earlier. Here, the fourth number is -3. It belongs to run 3, because runs
  // are counted from 0. Run 1 has 2 pixels, so run 3 would have -1.
  expect_refused(4, 5, "221M", "run 3 has -1");
  expect_refused(4, 5, " ", "no number at byte");
  expect_refused(4, 5, "p", "no number at byte");
  expect_refused(4, 5, "\xFF", "no number at byte");
  expect_refused(4, 5, "d", "no number at byte 1");  // The number has no end.
  expect_refused(4, 5, std::string(100, 'o'), "no number at byte");
}

}  // namespace
}  // namespace sfmamba::base
