#include "client/eval/coco_segmentation.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace sfmamba::client {
namespace {

constexpr char kKey[] = "segmentation";

absl::StatusOr<RunLengths> ReadRunLengths(const CocoJson& outline, int width,
                                          int height) {
  const absl::StatusOr<CocoJson> size = outline.List("size");
  if (!size.ok()) return size.status();
  if (size->size() != 2) return size->Error("expected height and width");
  const absl::StatusOr<int> own_height = size->at(0).AsSide();
  if (!own_height.ok()) return own_height.status();
  const absl::StatusOr<int> own_width = size->at(1).AsSide();
  if (!own_width.ok()) return own_width.status();
  if (width > 0 && (*own_width != width || *own_height != height)) {
    return size->Error(absl::StrCat("run lengths of ", *own_width, "x",
                                    *own_height, " pixels, the picture has ",
                                    width, "x", height));
  }
  const absl::StatusOr<CocoJson> counts = outline.Get("counts");
  if (!counts.ok()) return counts.status();
  absl::StatusOr<RunLengths> mask;
  if (counts->value().is_string()) {
    mask = FromCompressed(*counts->AsText(), *own_width, *own_height);
  } else {
    absl::StatusOr<std::vector<int64_t>> numbers = counts->AsWholes();
    if (!numbers.ok()) return numbers.status();
    mask = FromCounts(*std::move(numbers), *own_width, *own_height);
  }
  if (!mask.ok()) return counts->Error(mask.status().message());
  return mask;
}

absl::StatusOr<CocoSegmentation> ReadPolygons(const CocoJson& outline,
                                              int width, int height) {
  CocoSegmentation read;
  for (size_t i = 0; i < outline.size(); ++i) {
    const absl::StatusOr<std::vector<double>> polygon =
        outline.at(i).AsNumbers();
    if (!polygon.ok()) return polygon.status();
    if (polygon->size() % 2 != 0) {
      return outline.at(i).Error(absl::StrCat(
          "got ", polygon->size(), " numbers, expected pairs of x and y"));
    }
    if (polygon->empty()) continue;
    if (polygon->size() < 6) {
      ++read.short_polygons;
    } else if (width > 0) {
      RunLengths part = FromPolygon(*polygon, width, height);
      read.mask = read.mask ? Union(*read.mask, part) : std::move(part);
    }
  }
  return read;
}

}  // namespace

absl::StatusOr<CocoSegmentation> ReadSegmentation(const CocoJson& annotation,
                                                  int width, int height) {
  if (!annotation.Has(kKey)) return CocoSegmentation();
  const CocoJson outline = *annotation.Get(kKey);
  if (outline.value().empty()) return CocoSegmentation();
  if (outline.value().is_array()) return ReadPolygons(outline, width, height);
  if (!outline.value().is_object()) {
    return outline.Error("expected polygons or run lengths");
  }
  absl::StatusOr<RunLengths> mask = ReadRunLengths(outline, width, height);
  if (!mask.ok()) return mask.status();
  return CocoSegmentation{*std::move(mask)};
}

}  // namespace sfmamba::client
