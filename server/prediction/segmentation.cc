#include "server/prediction/segmentation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "base/coco_rle.h"
#include "base/png_encoder.h"

namespace sfmamba::prediction {
namespace {

// Classes whose indices fit into a byte, with 255 left for "ignore".
constexpr int kMaxByteClasses = 255;

// What each class is shown as: itself or, filtered out, "ignore".
std::vector<uint16_t> ShownAs(const SegmentParams& params, int classes) {
  const uint16_t ignore = classes <= kMaxByteClasses ? 0xff : 0xffff;
  std::vector<uint16_t> shown(classes,
                              params.class_filter.empty() ? 0 : ignore);
  if (params.class_filter.empty()) {
    for (int i = 0; i < classes; ++i) shown[i] = i;
  }
  for (const int id : params.class_filter) shown[id] = id;
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

absl::StatusOr<IndexPng> EncodePng(const model::Segmentation& map,
                                   const IndexRows& rows) {
  absl::StatusOr<std::string> png = base::EncodeGreyPng(
      map.width, map.height, 8 * rows.bytes_per_pixel(),
      [&rows](int y, uint8_t* row) { rows.Fill(y, /*high_first=*/true, row); });
  if (!png.ok()) return png.status();
  return IndexPng{*std::move(png)};
}

RawIndexMap CopyRaw(const model::Segmentation& map, const IndexRows& rows) {
  RawIndexMap raw;
  raw.bytes_per_pixel = rows.bytes_per_pixel();
  const size_t stride = size_t{1} * map.width * raw.bytes_per_pixel;
  raw.data.resize(stride * map.height);
  uint8_t* data = reinterpret_cast<uint8_t*>(&raw.data[0]);
  for (int y = 0; y < map.height; ++y) {
    rows.Fill(y, /*high_first=*/false, data + stride * y);
  }
  return raw;
}

std::vector<ClassRle> EncodeRles(const model::Segmentation& map,
                                 const std::vector<uint16_t>& shown,
                                 const std::vector<std::string>& labels) {
  std::vector<std::string> counts =
      base::EncodeRlePerClass(map.labels, map.height, map.width, shown.size());
  std::vector<ClassRle> classes;
  for (size_t id = 0; id < counts.size(); ++id) {
    if (counts[id].empty() || shown[id] != id) continue;
    classes.push_back({static_cast<int>(id), labels[id],
                       CocoRle{map.height, map.width, std::move(counts[id])}});
  }
  return classes;
}

std::vector<ClassArea> Areas(const model::Segmentation& map,
                             const std::vector<uint16_t>& shown,
                             const std::vector<std::string>& labels) {
  std::vector<int> ids;
  for (size_t id = 0; id < shown.size(); ++id) {
    if (map.areas[id] > 0 && shown[id] == id) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&map](int a, int b) {
    return map.areas[a] > map.areas[b];
  });
  std::vector<ClassArea> areas;
  for (const int id : ids) {
    const double fraction =
        static_cast<double>(map.areas[id]) / map.labels.size();
    areas.push_back(
        {id, labels[id], map.areas[id], static_cast<float>(fraction)});
  }
  return areas;
}

absl::StatusOr<std::string> EncodeConfidence(const model::Segmentation& map) {
  return base::EncodeGreyPng(
      map.width, map.height, 8, [&map](int y, uint8_t* row) {
        std::memcpy(row, &map.confidence[size_t{1} * y * map.width], map.width);
      });
}

}  // namespace

absl::Status SegmentationHandler::CheckParams(
    const repository::ModelDirectory& model) const {
  return ValidateParams(params_, model.labels.size());
}

int64_t SegmentationHandler::ResultBytes(const repository::ModelDirectory&,
                                         const ImageFacts& image) const {
  const bool original =
      params_.output_size == SegmentParams::OutputSize::kOriginal;
  const int64_t pixels = original ? image.seen.pixels() : image.input.pixels();
  return pixels * (sizeof(uint16_t) + params_.include_confidence_map);
}

void SegmentationHandler::FillTask(const repository::ModelDirectory&,
                                   batching::BatchTask* task) const {
  task->segmentation.original_size =
      params_.output_size == SegmentParams::OutputSize::kOriginal;
  task->segmentation.confidence = params_.include_confidence_map;
}

absl::StatusOr<Answer> SegmentationHandler::ToAnswer(
    const repository::ModelDirectory& model, const model::Result& result,
    const image::PictureFrame&) const {
  const auto& map = std::get<model::Segmentation>(result);
  const std::vector<uint16_t> shown = ShownAs(params_, model.labels.size());
  const IndexRows rows(map, shown);
  SegmentationAnswer answer;
  answer.height = map.height;
  answer.width = map.width;
  switch (params_.encoding) {
    case SegmentParams::Encoding::kRlePerClass:
      answer.map = EncodeRles(map, shown, model.labels);
      break;
    case SegmentParams::Encoding::kRawIndex:
      answer.map = CopyRaw(map, rows);
      break;
    case SegmentParams::Encoding::kPngIndex: {
      absl::StatusOr<IndexPng> png = EncodePng(map, rows);
      if (!png.ok()) return png.status();
      answer.map = *std::move(png);
      break;
    }
  }
  if (params_.include_class_areas) {
    answer.areas = Areas(map, shown, model.labels);
  }
  if (params_.include_confidence_map) {
    absl::StatusOr<std::string> png = EncodeConfidence(map);
    if (!png.ok()) return png.status();
    answer.confidence_png = *std::move(png);
  }
  return Answer(std::move(answer));
}

absl::string_view SegmentationHandler::SmallerResponse() const {
  return "fewer images, encoding PNG_INDEX, output_size MODEL, or no "
         "include_confidence_map";
}

}  // namespace sfmamba::prediction
