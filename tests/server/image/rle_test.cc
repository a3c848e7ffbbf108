#include "server/image/rle.h"

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/masks.h"
#include "tests/testing/fixture.h"

namespace sfmamba::image {
namespace {

model::InstanceMask WholeMask(int height, int width,
                              std::vector<uint8_t> data) {
  model::InstanceMask mask;
  mask.height = height;
  mask.width = width;
  mask.data = std::move(data);
  return mask;
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
    const model::InstanceMask mask =
        WholeMask(height, width, {pixels, pixels + height * width});
    EXPECT_EQ(EncodeRle(mask, 0, 0, height, width), expected) << i;
  }
}

TEST(RunLengthsTest, ReadsAsItsComment) {
  RunLengths runs;
  runs.Add(3, 7);
  runs.Add(9, 10);
  EXPECT_EQ(runs.Counts(12), (std::vector<int64_t>{3, 4, 2, 1, 2}));
}

TEST(RunLengthsTest, BeginsWithZeroIfTheFirstPixelIsSet) {
  RunLengths runs;
  runs.Add(0, 5);
  EXPECT_EQ(runs.Counts(5), (std::vector<int64_t>{0, 5}));
}

TEST(RunLengthsTest, JoinsWhatAdjoins) {
  RunLengths runs;
  runs.Add(0, 2);
  runs.Add(2, 4);
  runs.Add(4, 5);
  EXPECT_EQ(runs.Counts(9), (std::vector<int64_t>{0, 5, 4}));
}

TEST(RunLengthsTest, NothingSetIsOneRun) {
  EXPECT_EQ(RunLengths().Counts(12), (std::vector<int64_t>{12}));
}

// Height and width of the picture, then left, top, height, width of the mask.
using Place = std::tuple<int, int, int, int, int, int>;

class RleRoundTripTest : public ::testing::TestWithParam<Place> {};

TEST_P(RleRoundTripTest, AMaskComesBackAtItsPlace) {
  const auto [height, width, left, top, rows, columns] = GetParam();
  std::mt19937 random(1);
  for (int percent : {0, 3, 50, 97, 100}) {
    model::InstanceMask mask;
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
    for (int blotch : {1, 7}) {  // Pixels of a row that are alike.
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

}  // namespace
}  // namespace sfmamba::image
