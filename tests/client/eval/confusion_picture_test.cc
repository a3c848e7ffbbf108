#include "client/eval/confusion_picture.h"

#include <array>
#include <map>
#include <string>

#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

constexpr int kCell = 28;

// Returns the colour near a cell's corner, where there are no letters. Cells
// are counted from the last row and the last column of the picture, from 0.
// `up` is the number of the row, and `left` the number of the column.
std::array<int, 3> CellColour(const Picture& picture, int up, int left) {
  const int x = picture.width - 1 - (left + 1) * kCell + 2;
  const int y = picture.height - 1 - (up + 1) * kCell + 2;
  const uint8_t* pixel = &picture.data[(y * picture.width + x) * 3];
  return {pixel[0], pixel[1], pixel[2]};
}

constexpr std::array<int, 3> kNothing = {255, 255, 255}, kAll = {31, 92, 170};

TEST(ConfusionPictureTest, ACellIsTheDarkerTheMoreOfItsRowItHas) {
  Confusion confusion;
  confusion.Add(0, 0, 7);
  confusion.Add(3, 0, 1);
  confusion.Add(3, 3, 1);
  const Picture picture = DrawConfusion(confusion, {{0, "cup"}, {3, "chair"}});
  // The cell of cups that the model classified as cups.
  EXPECT_EQ(CellColour(picture, 1, 1), kAll);
  // The cell of cups that the model classified as chairs.
  EXPECT_EQ(CellColour(picture, 1, 0), kNothing);
  EXPECT_EQ(CellColour(picture, 0, 1), CellColour(picture, 0, 0));
  EXPECT_NE(CellColour(picture, 0, 0), kAll);
  EXPECT_NE(CellColour(picture, 0, 0), kNothing);
}

TEST(ConfusionPictureTest, WhatNoColumnIsForStandsInTheLast) {
  Confusion confusion;
  confusion.Add(0, 0);
  confusion.Add(1, Confusion::kNone);
  const Picture picture = DrawConfusion(confusion, {});
  // The cell of pictures of class 0 that the model gave class 0.
  EXPECT_EQ(CellColour(picture, 1, 2), kAll);
  EXPECT_EQ(CellColour(picture, 1, 0), kNothing);
  // The cell of pictures of class 1 without an answer. It is in the column
  // "(other)".
  EXPECT_EQ(CellColour(picture, 0, 0), kAll);
}

TEST(ConfusionPictureTest, OfManyClassesTheMostMistakenAreDrawn) {
  Confusion confusion;
  for (int i = 0; i < 100; ++i) confusion.Add(i, i, 5);
  const int all_right = DrawConfusion(confusion, {}).height;
  confusion.Add(98, 99, 5);
  const Picture picture = DrawConfusion(confusion, {});
  EXPECT_EQ(picture.height, all_right);
  EXPECT_LT(picture.height, (kMaxDrawnClasses + 4) * kCell);
  const std::array<int, 3> half = CellColour(picture, 1, 0);
  // Classes 98 and 99 are drawn last.
  EXPECT_EQ(CellColour(picture, 1, 1), half);
  EXPECT_EQ(CellColour(picture, 0, 0), kAll);
}

TEST(ConfusionPictureTest, NothingIsAPictureToo) {
  EXPECT_GT(DrawConfusion(Confusion(), {}).width, 0);
}

TEST(ConfusionPictureTest, LongNamesAreCut) {
  Confusion confusion;
  confusion.Add(0, 0);
  const Picture picture =
      DrawConfusion(confusion, {{0, std::string(500, 'n')}});
  EXPECT_LT(picture.width, 600);
  EXPECT_EQ(picture.data.size(), picture.width * picture.height * 3);
}

}  // namespace
}  // namespace sfmamba::client
