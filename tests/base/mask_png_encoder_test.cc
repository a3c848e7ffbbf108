#include "base/mask_png_encoder.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/masks.h"

namespace sfmamba::base {
namespace {

std::vector<int> EdgesOf(const std::vector<int>& pixels) {
  std::vector<int> edges;
  int last = 0;
  for (size_t x = 0; x < pixels.size(); ++x) {
    if (pixels[x] != last) edges.push_back(x);
    last = pixels[x];
  }
  if (last != 0) edges.push_back(pixels.size());
  return edges;
}

// The rows through the encoder and libpng's decoder.
void ExpectSame(const std::vector<std::vector<int>>& rows) {
  MaskPngEncoder encoder(rows[0].size(), rows.size());
  std::vector<int> expected;
  for (const std::vector<int>& row : rows) {
    EXPECT_FALSE(encoder.done());
    encoder.AddRow(EdgesOf(row));
    expected.insert(expected.end(), row.begin(), row.end());
  }
  EXPECT_TRUE(encoder.done());
  EXPECT_GT(encoder.bytes(), 0);
  const server::GreyPng png = server::DecodeGreyPng(encoder.Take());
  EXPECT_EQ(png.bit_depth, 1);
  EXPECT_EQ(png.width, rows[0].size());
  EXPECT_EQ(png.height, rows.size());
  EXPECT_EQ(png.values, expected);
}

// Rows of runs that are about as long as stated; some rows are like the one
// above but for a few pixels.
std::vector<std::vector<int>> RandomRows(int width, int height, int run,
                                         std::mt19937& random) {
  std::vector<std::vector<int>> rows(height, std::vector<int>(width));
  for (int y = 0; y < height; ++y) {
    if (y > 0 && random() % 2 == 0) {
      rows[y] = rows[y - 1];
      for (int i = random() % 3; i > 0; --i) rows[y][random() % width] ^= 1;
      continue;
    }
    int value = random() % 2;
    for (int& pixel : rows[y]) {
      if (random() % run == 0) value ^= 1;
      pixel = value;
    }
  }
  return rows;
}

TEST(MaskPngEncoderTest, AnyRowsComeBack) {
  std::mt19937 random(1);
  for (const auto& [width, height] : {std::pair{1, 1},
                                      {1, 50},
                                      {7, 3},
                                      {8, 8},
                                      {9, 40},
                                      {63, 20},
                                      {64, 64},
                                      {65, 33},
                                      {300, 200},
                                      {5003, 60}}) {
    for (const int run : {1, 2, 5, 30, 1000}) {
      ExpectSame(RandomRows(width, height, run, random));
    }
  }
}

TEST(MaskPngEncoderTest, EmptyAndFullRowsComeBack) {
  for (const auto& [width, height] : {std::pair{5, 7}, {2070, 300}}) {
    for (const int pattern : {0, 1, 2, 5, 6}) {
      std::vector<std::vector<int>> rows;
      for (int y = 0; y < height; ++y) {
        rows.emplace_back(width, pattern >> y % 3 & 1);
      }
      ExpectSame(rows);
    }
  }
}

// Runs of lengths at which a match must be divided.
TEST(MaskPngEncoderTest, RunsOfAnyLengthComeBack) {
  for (int bytes = 1; bytes < 530; ++bytes) {
    std::vector<int> row(8 * 531);
    std::fill(row.begin() + 8, row.begin() + 8 + 8 * bytes, 1);
    ExpectSame({row, row, std::vector<int>(8 * 531), row, row, row, row, row});
  }
}

TEST(MaskPngEncoderTest, EdgesThatMeetCancel) {
  MaskPngEncoder encoder(20, 2);
  encoder.AddRow({0, 3, 3, 3, 5, 5, 7, 20});
  encoder.AddRow({0, 0, 20, 20});
  const server::GreyPng png = server::DecodeGreyPng(encoder.Take());
  for (int x = 0; x < 20; ++x) {
    EXPECT_EQ(png.values[x], x < 3 || x >= 7) << x;
    EXPECT_EQ(png.values[20 + x], 0) << x;
  }
}

TEST(MaskPngEncoderTest, EmptyRowsMayBeAddedTogether) {
  MaskPngEncoder encoder(9, 1000);
  encoder.AddEmptyRows(499);
  encoder.AddRow({2, 9});
  encoder.AddEmptyRows(0);
  encoder.AddRow({2, 9});
  encoder.AddEmptyRows(499);
  EXPECT_TRUE(encoder.done());
  const server::GreyPng png = server::DecodeGreyPng(encoder.Take());
  EXPECT_EQ(std::count(png.values.begin(), png.values.end(), 1), 14);
  EXPECT_EQ(png.values[9 * 499 + 1], 0);
  EXPECT_EQ(png.values[9 * 500 + 8], 1);
}

TEST(MaskPngEncoderTest, AnEmptyPictureOfFiftyMegapixelsIsSmall) {
  MaskPngEncoder encoder(7071, 7071);
  encoder.AddEmptyRows(7071);
  EXPECT_LT(encoder.Take().size(), 20'000);
}

}  // namespace
}  // namespace sfmamba::base
