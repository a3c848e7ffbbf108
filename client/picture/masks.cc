#include "client/picture/masks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/picture/picture.h"
#include "client/picture/png_codec.h"

namespace sfmamba::client {
namespace {

absl::Status Malformed(absl::string_view what, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(what, ": ", why));
}

std::string SizeName(int64_t width, int64_t height) {
  return absl::StrCat(width, " x ", height);
}

// Reads the next number of `counts` from `*at` on; false if it is cut off or
// too long. Source: COCO's mask format; docs/heads.md, "COCO run lengths".
bool ReadNumber(const std::string& counts, size_t* at, int64_t* number) {
  constexpr int kMaxShift = 35;  // A run, signed, has 32 bits at most.
  *number = 0;
  for (int shift = 0; shift < kMaxShift && *at < counts.size(); shift += 5) {
    const int group = counts[(*at)++] - '0';
    if (group < 0 || group > 0x3F) return false;
    *number |= int64_t{group & 0x1F} << shift;
    if ((group & 0x20) != 0) continue;
    if ((group & 0x10) != 0) *number -= int64_t{1} << (shift + 5);
    return true;
  }
  return false;
}

// The lengths of the runs, of 0 and 1 in turn, which add up to `pixels`.
absl::StatusOr<std::vector<int>> ReadRuns(const std::string& counts,
                                          int64_t pixels) {
  std::vector<int> runs;
  int64_t sum = 0;
  for (size_t at = 0; at < counts.size();) {
    int64_t run;
    if (!ReadNumber(counts, &at, &run)) {
      return Malformed("RLE", absl::StrCat("no number at byte ", at));
    }
    if (runs.size() > 2) run += runs[runs.size() - 2];
    if (run < 0 || run > pixels - sum) {
      return Malformed(
          "RLE", absl::StrCat("run ", runs.size(), " has ", run, " pixels, ",
                              pixels - sum, " are left"));
    }
    sum += run;
    runs.push_back(run);
  }
  if (sum != pixels) {
    return Malformed("RLE", absl::StrCat("the runs have ", sum,
                                         " pixels, expected ", pixels));
  }
  return runs;
}

// Grows a rectangle by the run of `length` pixels from `begin` on in a picture
// of `height` rows, counted column by column.
void Include(int64_t begin, int64_t length, int height, Mask* bounds) {
  const int first_column = begin / height;
  const int last_column = (begin + length - 1) / height;
  const bool one_column = first_column == last_column;
  const int first_row = one_column ? begin % height : 0;
  const int last_row = one_column ? first_row + length - 1 : height - 1;
  if (bounds->width == 0) {
    bounds->left = first_column;
    bounds->top = first_row;
  }
  const int bottom =
      std::max(bounds->top + bounds->height, last_row + 1);  // Exclusive.
  bounds->top = std::min(bounds->top, first_row);
  bounds->height = bottom - bounds->top;
  bounds->width = last_column + 1 - bounds->left;
}

absl::StatusOr<IndexMap> MakeMap(absl::string_view what, int64_t width,
                                 int64_t height, uint16_t ignore) {
  const absl::Status status = CheckPictureSize(width, height);
  if (!status.ok()) return Malformed(what, status.message());
  IndexMap map;
  map.width = width;
  map.height = height;
  map.ignore = ignore;
  return map;
}

}  // namespace

int64_t Mask::Area() const { return std::count(data.begin(), data.end(), 1); }

absl::StatusOr<Mask> DecodeRle(const v1::CocoRle& rle) {
  const absl::Status status = CheckPictureSize(rle.width(), rle.height());
  if (!status.ok()) return Malformed("RLE", status.message());
  const int height = rle.height();
  const absl::StatusOr<std::vector<int>> runs =
      ReadRuns(rle.counts(), int64_t{1} * rle.width() * height);
  if (!runs.ok()) return runs.status();

  Mask mask;
  int64_t begin = 0;
  for (size_t i = 0; i < runs->size(); begin += (*runs)[i++]) {
    if (i % 2 == 1 && (*runs)[i] > 0) Include(begin, (*runs)[i], height, &mask);
  }
  mask.data.resize(size_t{1} * mask.width * mask.height);
  begin = 0;
  for (size_t i = 0; i < runs->size(); begin += (*runs)[i++]) {
    if (i % 2 == 0) continue;
    int column = begin / height;
    int row = begin % height;
    for (int left = (*runs)[i]; left > 0; --left) {
      mask.data[size_t{1} * (row - mask.top) * mask.width + column -
                mask.left] = 1;
      if (++row == height) row = 0, ++column;
    }
  }
  return mask;
}

absl::StatusOr<Mask> DecodePngCrop(absl::string_view png,
                                   const v1::BoundingBox& box) {
  for (const float side :
       {box.x_min(), box.y_min(), box.x_max(), box.y_max()}) {
    if (!(side >= 0 && side <= kMaxPictureSide)) {
      return Malformed("box", absl::StrCat("a side at ", side));
    }
  }
  Mask mask;
  mask.left = std::floor(box.x_min());
  mask.top = std::floor(box.y_min());
  mask.width =
      std::max(1, static_cast<int>(std::ceil(box.x_max())) - mask.left);
  mask.height =
      std::max(1, static_cast<int>(std::ceil(box.y_max())) - mask.top);
  const absl::StatusOr<GreyPng> grey = ReadGreyPng(png);
  if (!grey.ok()) return Malformed("mask", grey.status().message());
  if (grey->bit_depth != 1 || grey->width != mask.width ||
      grey->height != mask.height) {
    return Malformed(
        "mask", absl::StrCat(SizeName(grey->width, grey->height), " PNG of ",
                             grey->bit_depth, " bits, expected ",
                             SizeName(mask.width, mask.height), " of 1 bit"));
  }
  mask.data.assign(grey->data.begin(), grey->data.end());
  return mask;
}

absl::StatusOr<Mask> DecodeMask(const v1::Detection& detection) {
  switch (detection.mask_case()) {
    case v1::Detection::kRle:
      return DecodeRle(detection.rle());
    case v1::Detection::kPngCrop:
      return DecodePngCrop(detection.png_crop(), detection.box());
    case v1::Detection::MASK_NOT_SET:
      break;
  }
  return Mask();
}

absl::StatusOr<IndexMap> DecodePngIndex(absl::string_view png) {
  absl::StatusOr<GreyPng> grey = ReadGreyPng(png);
  if (!grey.ok()) return Malformed("map", grey.status().message());
  if (grey->bit_depth != 8 && grey->bit_depth != 16) {
    return Malformed("map", absl::StrCat("a PNG of ", grey->bit_depth,
                                         " bits, expected 8 or 16"));
  }
  absl::StatusOr<IndexMap> map =
      MakeMap("map", grey->width, grey->height, (1 << grey->bit_depth) - 1);
  if (map.ok()) map->data = std::move(grey->data);
  return map;
}

absl::StatusOr<IndexMap> DecodeRawIndex(const v1::RawIndexMap& raw) {
  if (raw.bytes_per_pixel() != 1 && raw.bytes_per_pixel() != 2) {
    return Malformed("map", absl::StrCat(raw.bytes_per_pixel(),
                                         " bytes a pixel, expected 1 or 2"));
  }
  absl::StatusOr<IndexMap> map =
      MakeMap("map", raw.width(), raw.height(),
              raw.bytes_per_pixel() == 1 ? 0xFF : 0xFFFF);
  if (!map.ok()) return map;
  const size_t pixels = size_t{1} * map->width * map->height;
  if (raw.data().size() != pixels * raw.bytes_per_pixel()) {
    return Malformed("map", absl::StrCat(raw.data().size(), " bytes, expected ",
                                         pixels * raw.bytes_per_pixel()));
  }
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(raw.data().data());
  map->data.resize(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    map->data[i] = raw.bytes_per_pixel() == 1
                       ? bytes[i]
                       : bytes[2 * i] | bytes[2 * i + 1] << 8;
  }
  return map;
}

absl::StatusOr<IndexMap> DecodeClassRles(const v1::ClassRleList& list,
                                         int width, int height) {
  absl::StatusOr<IndexMap> map =
      MakeMap("map", width, height, std::numeric_limits<uint16_t>::max());
  if (!map.ok()) return map;
  map->data.assign(size_t{1} * width * height, map->ignore);
  for (const v1::ClassRle& item : list.classes()) {
    const std::string name = absl::StrCat("class ", item.class_id());
    if (item.class_id() < 0 || item.class_id() >= map->ignore) {
      return Malformed(name, absl::StrCat("expected 0 to ", map->ignore - 1));
    }
    if (item.rle().width() != width || item.rle().height() != height) {
      return Malformed(
          name, absl::StrCat(SizeName(item.rle().width(), item.rle().height()),
                             ", expected ", SizeName(width, height)));
    }
    const absl::StatusOr<Mask> mask = DecodeRle(item.rle());
    if (!mask.ok()) return Malformed(name, mask.status().message());
    for (size_t i = 0; i < mask->data.size(); ++i) {
      if (mask->data[i] == 0) continue;
      const size_t row = mask->top + i / mask->width;
      uint16_t& pixel = map->data[row * width + mask->left + i % mask->width];
      if (pixel != map->ignore) {
        return Malformed(name, absl::StrCat("has pixels of class ", pixel));
      }
      pixel = item.class_id();
    }
  }
  return map;
}

absl::StatusOr<IndexMap> DecodeIndexMap(const v1::SegmentResult& result) {
  absl::StatusOr<IndexMap> map;
  switch (result.map_case()) {
    case v1::SegmentResult::kPngIndex:
      map = DecodePngIndex(result.png_index());
      break;
    case v1::SegmentResult::kRle:
      map = DecodeClassRles(result.rle(), result.width(), result.height());
      break;
    case v1::SegmentResult::kRaw:
      map = DecodeRawIndex(result.raw());
      break;
    case v1::SegmentResult::MAP_NOT_SET:
      return Malformed("map", "there is none");
  }
  if (map.ok() &&
      (map->width != result.width() || map->height != result.height())) {
    return Malformed(
        "map", absl::StrCat(SizeName(map->width, map->height), ", expected ",
                            SizeName(result.width(), result.height())));
  }
  return map;
}

}  // namespace sfmamba::client
