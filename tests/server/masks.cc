#include "tests/server/masks.h"

#include <cstdio>
#include <cstring>

#include "gtest/gtest.h"
#include "png.h"

namespace sfmamba::server {
namespace {

void Read(png_structp png, png_bytep target, size_t size) {
  std::string* left = static_cast<std::string*>(png_get_io_ptr(png));
  if (size > left->size()) png_error(png, "it ends too early");
  std::memcpy(target, left->data(), size);
  left->erase(0, size);
}

}  // namespace

GreyPng DecodeGreyPng(const std::string& bytes) {
  GreyPng result;
  std::string left = bytes;
  std::vector<uint8_t> row;
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  if (setjmp(png_jmpbuf(png))) {
    ADD_FAILURE() << "not a PNG of " << bytes.size() << " bytes";
    png_destroy_read_struct(&png, &info, nullptr);
    return GreyPng();
  }
  png_set_read_fn(png, &left, Read);
  png_read_info(png, info);
  EXPECT_EQ(png_get_color_type(png, info), PNG_COLOR_TYPE_GRAY);
  result.width = png_get_image_width(png, info);
  result.height = png_get_image_height(png, info);
  result.bit_depth = png_get_bit_depth(png, info);
  png_set_packing(png);  // One byte per pixel, or two for 16 bits.
  png_read_update_info(png, info);
  row.resize(png_get_rowbytes(png, info));
  for (int y = 0; y < result.height; ++y) {
    png_read_row(png, row.data(), nullptr);
    for (int x = 0; x < result.width; ++x) {
      result.values.push_back(
          result.bit_depth == 16 ? row[2 * x] << 8 | row[2 * x + 1] : row[x]);
    }
  }
  png_read_end(png, nullptr);
  EXPECT_TRUE(left.empty());
  png_destroy_read_struct(&png, &info, nullptr);
  return result;
}

std::vector<int> DecodeRle(const std::string& counts, int height, int width) {
  std::vector<int64_t> runs;
  for (size_t at = 0; at < counts.size();) {
    int64_t number = 0;
    int shift = 0, group;
    do {
      group = counts[at++] - 48;
      number |= static_cast<int64_t>(group & 0x1f) << shift;
      shift += 5;
    } while ((group & 0x20) != 0 && at < counts.size());
    if ((group & 0x10) != 0) number -= int64_t{1} << shift;
    if (runs.size() > 2) number += runs[runs.size() - 2];
    runs.push_back(number);
  }
  std::vector<int> by_column;
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_GE(runs[i], i == 0 ? 0 : 1);
    by_column.insert(by_column.end(), runs[i], i % 2);
  }
  EXPECT_EQ(by_column.size(), height * width);
  by_column.resize(height * width);
  std::vector<int> mask(height * width);
  for (int x = 0; x < width; ++x) {
    for (int y = 0; y < height; ++y) {
      mask[y * width + x] = by_column[x * height + y];
    }
  }
  return mask;
}

}  // namespace sfmamba::server
