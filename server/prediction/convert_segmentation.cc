#include "server/prediction/convert_segmentation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "server/image/png_encoder.h"
#include "server/image/rle.h"

namespace sfmamba::prediction {
namespace {

// Classes whose indices fit into a byte, with 255 left for "ignore".
constexpr int kMaxByteClasses = 255;

// What each class is shown as: itself or, filtered out, "ignore".
std::vector<uint16_t> ShownAs(const v1::SegmentParams& params, int classes) {
  const uint16_t ignore = classes <= kMaxByteClasses ? 0xff : 0xffff;
  std::vector<uint16_t> shown(classes,
                              params.class_filter().empty() ? 0 : ignore);
  if (params.class_filter().empty()) {
    for (int i = 0; i < classes; ++i) shown[i] = i;
  }
  for (const int id : params.class_filter()) shown[id] = id;
  return shown;
}

// Rows of the map as they are sent.
class IndexRows {
 public:
  IndexRows(const model::Segmentation& map, const std::vector<uint16_t>& shown)
      : map_(map), shown_(shown) {}

  int bytes_per_pixel() const {
    return shown_.size() <= kMaxByteClasses ? 1 : 2;
  }
  // Two bytes come with the low one first, or the high one.
  void Fill(int y, bool high_first, uint8_t* row) const {
    const uint16_t* labels = &map_.labels[size_t{1} * y * map_.width];
    if (bytes_per_pixel() == 1) {
      for (int x = 0; x < map_.width; ++x) row[x] = shown_[labels[x]];
      return;
    }
    for (int x = 0; x < map_.width; ++x) {
      const uint16_t index = shown_[labels[x]];
      row[2 * x + (high_first ? 1 : 0)] = index & 0xff;
      row[2 * x + (high_first ? 0 : 1)] = index >> 8;
    }
  }

 private:
  const model::Segmentation& map_;
  const std::vector<uint16_t>& shown_;
};

absl::Status FillPng(const model::Segmentation& map, const IndexRows& rows,
                     v1::SegmentResult* result) {
  absl::StatusOr<std::string> png = image::EncodeGreyPng(
      map.width, map.height, 8 * rows.bytes_per_pixel(),
      [&rows](int y, uint8_t* row) { rows.Fill(y, /*high_first=*/true, row); });
  if (!png.ok()) return png.status();
  result->set_png_index(*std::move(png));
  return absl::OkStatus();
}

void FillRaw(const model::Segmentation& map, const IndexRows& rows,
             v1::RawIndexMap* raw) {
  raw->set_width(map.width);
  raw->set_height(map.height);
  raw->set_bytes_per_pixel(rows.bytes_per_pixel());
  const size_t stride = size_t{1} * map.width * rows.bytes_per_pixel();
  raw->mutable_data()->resize(stride * map.height);
  uint8_t* data = reinterpret_cast<uint8_t*>(&(*raw->mutable_data())[0]);
  for (int y = 0; y < map.height; ++y) {
    rows.Fill(y, /*high_first=*/false, data + stride * y);
  }
}

void FillRle(const model::Segmentation& map, const std::vector<uint16_t>& shown,
             const std::vector<std::string>& labels, v1::ClassRleList* list) {
  std::vector<std::string> counts =
      image::EncodeRlePerClass(map.labels, map.height, map.width, shown.size());
  for (size_t id = 0; id < counts.size(); ++id) {
    if (counts[id].empty() || shown[id] != id) continue;
    v1::ClassRle* proto = list->add_classes();
    proto->set_class_id(id);
    proto->set_label(labels[id]);
    proto->mutable_rle()->set_height(map.height);
    proto->mutable_rle()->set_width(map.width);
    proto->mutable_rle()->set_counts(std::move(counts[id]));
  }
}

void FillAreas(const model::Segmentation& map,
               const std::vector<uint16_t>& shown,
               const std::vector<std::string>& labels,
               v1::SegmentResult* result) {
  std::vector<int> ids;
  for (size_t id = 0; id < shown.size(); ++id) {
    if (map.areas[id] > 0 && shown[id] == id) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&map](int a, int b) {
    return map.areas[a] > map.areas[b];
  });
  for (const int id : ids) {
    v1::ClassArea* area = result->add_areas();
    area->set_class_id(id);
    area->set_label(labels[id]);
    area->set_pixel_count(map.areas[id]);
    area->set_fraction(static_cast<double>(map.areas[id]) / map.labels.size());
  }
}

absl::Status FillConfidence(const model::Segmentation& map,
                            v1::SegmentResult* result) {
  absl::StatusOr<std::string> png = image::EncodeGreyPng(
      map.width, map.height, 8, [&map](int y, uint8_t* row) {
        std::memcpy(row, &map.confidence[size_t{1} * y * map.width], map.width);
      });
  if (!png.ok()) return png.status();
  result->set_confidence_png(*std::move(png));
  return absl::OkStatus();
}

}  // namespace

absl::Status ToProto(const model::Segmentation& segmentation,
                     const v1::SegmentParams& params,
                     const std::vector<std::string>& labels,
                     v1::SegmentResult* result) {
  result->set_width(segmentation.width);
  result->set_height(segmentation.height);
  const std::vector<uint16_t> shown = ShownAs(params, labels.size());
  const IndexRows rows(segmentation, shown);
  absl::Status status;
  switch (params.encoding()) {
    case v1::SegmentParams::RLE_PER_CLASS:
      FillRle(segmentation, shown, labels, result->mutable_rle());
      break;
    case v1::SegmentParams::RAW_INDEX:
      FillRaw(segmentation, rows, result->mutable_raw());
      break;
    default:
      status = FillPng(segmentation, rows, result);
  }
  if (params.include_class_areas()) {
    FillAreas(segmentation, shown, labels, result);
  }
  if (status.ok() && params.include_confidence_map()) {
    status = FillConfidence(segmentation, result);
  }
  return status;
}

}  // namespace sfmamba::prediction
