#include "client/picture/masks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/coco_rle.h"
#include "base/image_header.h"
#include "base/png_decoder.h"
#include "client/picture/picture.h"

namespace sfmamba::client {
namespace {

absl::Status Malformed(absl::string_view what, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(what, ": ", why));
}

std::string SizeName(int64_t width, int64_t height) {
  return absl::StrCat(width, " x ", height);
}

absl::StatusOr<IndexMap> MakeMap(absl::string_view what, int64_t width,
                                 int64_t height, uint16_t ignore) {
  const absl::Status status =
      base::CheckImageSize(width, height, PictureLimits());
  if (!status.ok()) return Malformed(what, status.message());
  IndexMap map;
  map.width = width;
  map.height = height;
  map.ignore = ignore;
  return map;
}

}  // namespace

absl::StatusOr<Mask> DecodeRle(const v1::CocoRle& rle) {
  absl::StatusOr<Mask> mask =
      base::DecodeRle(rle.counts(), rle.height(), rle.width(), PictureLimits());
  if (!mask.ok()) return Malformed("RLE", mask.status().message());
  return mask;
}

absl::StatusOr<Mask> DecodePngCrop(absl::string_view png,
                                   const v1::BoundingBox& box) {
  for (const float side :
       {box.x_min(), box.y_min(), box.x_max(), box.y_max()}) {
    if (!(side >= 0 && side <= PictureLimits().max_side)) {
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
  const absl::StatusOr<base::GreyPng> grey =
      base::DecodeGreyPng(png, PictureLimits());
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
  absl::StatusOr<base::GreyPng> grey =
      base::DecodeGreyPng(png, PictureLimits());
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
