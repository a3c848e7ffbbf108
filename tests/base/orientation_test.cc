#include "base/orientation.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/server/picture.h"

namespace sfmamba::base {
namespace {

// Returns an EXIF block without the "Exif\0\0" at its beginning.
std::string Tiff(int orientation, bool little_endian) {
  return server::ExifOrientation(orientation, little_endian).substr(6);
}

TEST(ExifOrientationTest, ReadsBothByteOrders) {
  for (const bool little_endian : {false, true}) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      EXPECT_EQ(ExifOrientation(Tiff(orientation, little_endian)), orientation);
    }
    EXPECT_EQ(ExifOrientation(server::ExifOrientation(6, little_endian)), 6);
    EXPECT_EQ(ExifOrientation(Tiff(0, little_endian)), 1);
    EXPECT_EQ(ExifOrientation(Tiff(9, little_endian)), 1);
  }
}

TEST(ExifOrientationTest, ReadsEveryIntegerType) {
  const auto with_type = [](std::string tiff, char type, absl::string_view at) {
    tiff[tiff[0] == 'I' ? 12 : 13] = type;
    return tiff.replace(18, at.size(), at.data(), at.size());
  };
  constexpr char kByte = 1, kAscii = 2, kShort = 3, kLong = 4, kRational = 5;
  EXPECT_EQ(ExifOrientation(with_type(Tiff(1, true), kLong, {"\6\0\0\0", 4})),
            6);
  EXPECT_EQ(ExifOrientation(with_type(Tiff(1, false), kLong, {"\0\0\0\6", 4})),
            6);
  EXPECT_EQ(ExifOrientation(with_type(Tiff(1, true), kLong, {"\6\0\1\0", 4})),
            1);
  EXPECT_EQ(ExifOrientation(with_type(Tiff(1, false), kByte, "\6")), 6);
  EXPECT_EQ(ExifOrientation(with_type(Tiff(6, true), kShort, "")), 6);
  for (const char type : {kAscii, kRational}) {
    EXPECT_EQ(ExifOrientation(with_type(Tiff(6, true), type, "")), 1);
  }
}

TEST(ExifOrientationTest, WhatIsCutOffIsNone) {
  const std::string tiff = Tiff(6, true);
  for (size_t size = 0; size < 8; ++size) {
    EXPECT_EQ(ExifOrientation(tiff.substr(0, size)), std::nullopt) << size;
  }
  for (size_t size = 8; size < tiff.size() - 4; ++size) {
    EXPECT_EQ(ExifOrientation(tiff.substr(0, size)), 1) << size;
  }
}

TEST(ExifOrientationTest, ADirectoryThatPointsOutsideIsNone) {
  std::string tiff = Tiff(6, true);
  tiff.replace(4, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(ExifOrientation(tiff), 1);
  tiff = Tiff(6, true);
  // The directory now claims to have 65535 entries, but the block contains only
  // the first one.
  tiff.replace(8, 2, "\xFF\xFF");
  // The first entry gets another tag, so that it is not the orientation.
  tiff[10] = '\0';
  EXPECT_EQ(ExifOrientation(tiff), 1);
}

TEST(OrientTest, TurnsByAQuarter) {
  // A row of two pixels.
  RgbImage stored;
  stored.width = 2;
  stored.height = 1;
  stored.data = {1, 2, 3, 4, 5, 6};
  const RgbImage seen = Orient(stored, 6);
  EXPECT_EQ(seen.width, 1);
  EXPECT_EQ(seen.height, 2);
  EXPECT_EQ(seen.data, stored.data);
  EXPECT_EQ(Orient(stored, 8).data, (std::vector<uint8_t>{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(Orient(stored, 1).data, stored.data);
}

TEST(OrientTest, WhatIsNoOrientationTurnsNothing) {
  RgbImage stored;
  stored.width = 2;
  stored.height = 1;
  stored.data = {1, 2, 3, 4, 5, 6};
  for (const int orientation : {-1, 0, 9}) {
    EXPECT_EQ(Orient(stored, orientation).data, stored.data);
    EXPECT_EQ(Orient(stored, orientation).width, 2);
  }
}

}  // namespace
}  // namespace sfmamba::base
