#include "server/prediction/segmentation_encoder.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/coco_rle.h"
#include "base/png_encoder.h"
#include "server/prediction/logits_map.h"

namespace sfmamba::prediction {
namespace {

// The maximum number of classes for which an index takes one byte. Index 255 is
// not a class but means "ignore".
constexpr int kMaxByteClasses = 255;
// The expected time to encode one pixel of a map.
constexpr absl::Duration kPerPixel = absl::Nanoseconds(8);
// The maximum number of pixels in a step of PNG or raw encoding, which takes 1
// to 14 ns per pixel. A step has at least one row.
constexpr int kPiecePixels = 1 << 18;
// The maximum number of pixels in a step of run-length encoding, which takes up
// to 4 ns per pixel.
constexpr int kPieceRunPixels = 1 << 20;

// Returns the index that is sent for each class. Classes in `filter` keep their
// index, and all other classes become "ignore". If `filter` is empty, all
// classes keep their index.
std::vector<uint16_t> ShownAs(absl::Span<const int32_t> filter, int classes) {
  const uint16_t ignore = classes <= kMaxByteClasses ? 0xff : 0xffff;
  std::vector<uint16_t> shown(classes, filter.empty() ? 0 : ignore);
  if (filter.empty()) {
    for (int i = 0; i < classes; ++i) shown[i] = i;
  }
  for (const int id : filter) shown[id] = id;
  return shown;
}

// Converts rows of the class map to the indices that are sent.
class IndexRows {
 public:
  IndexRows(const model::Segmentation& map, const std::vector<uint16_t>& shown)
      : map_(map), shown_(shown) {}

  int bytes_per_pixel() const { return IndexBytes(shown_.size()); }
  // Writes the indices of row `y` to `row`. If indices have two bytes, the high
  // byte comes first if `high_first` is true, and last if it is false.
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

// Encodes a class map in steps. Each subclass implements one encoding.
class MapEncoder {
 public:
  virtual ~MapEncoder() = default;

  virtual bool done() const = 0;
  virtual absl::Status EncodeNext() = 0;
  virtual int64_t bytes() const = 0;
  // Moves the map into `answer`. May be called only once, after done() becomes
  // true.
  virtual void Take(v1::SegmentResult* answer) = 0;
};

int RowsOfPiece(int width) { return std::max(1, kPiecePixels / width); }

class PngMap final : public MapEncoder {
 public:
  PngMap(const model::Segmentation& map, const IndexRows& rows)
      : width_(map.width),
        rows_(rows),
        png_(map.width, map.height, 8 * rows.bytes_per_pixel()) {}

  bool done() const override { return png_.done(); }
  absl::Status EncodeNext() override {
    return png_.AddRows(RowsOfPiece(width_), [this](int y, uint8_t* row) {
      rows_.Fill(y, /*high_first=*/true, row);
    });
  }
  int64_t bytes() const override { return png_.bytes(); }
  void Take(v1::SegmentResult* answer) override {
    answer->set_png_index(png_.Take());
  }

 private:
  const int width_;
  const IndexRows& rows_;
  base::GreyPngEncoder png_;
};

class RawMap final : public MapEncoder {
 public:
  RawMap(const model::Segmentation& map, const IndexRows& rows)
      : map_(map), rows_(rows) {
    raw_.set_width(map.width);
    raw_.set_height(map.height);
    raw_.set_bytes_per_pixel(rows.bytes_per_pixel());
    stride_ = size_t{1} * map.width * rows.bytes_per_pixel();
    raw_.mutable_data()->reserve(stride_ * map.height);
  }

  bool done() const override { return bytes() == stride_ * map_.height; }
  absl::Status EncodeNext() override {
    const int begin = bytes() / stride_;
    const int end = std::min(begin + RowsOfPiece(map_.width), map_.height);
    raw_.mutable_data()->resize(stride_ * end);
    auto* data = reinterpret_cast<uint8_t*>(raw_.mutable_data()->data());
    for (int y = begin; y < end; ++y) {
      rows_.Fill(y, /*high_first=*/false, data + stride_ * y);
    }
    return absl::OkStatus();
  }
  int64_t bytes() const override { return raw_.data().size(); }
  void Take(v1::SegmentResult* answer) override {
    *answer->mutable_raw() = std::move(raw_);
  }

 private:
  const model::Segmentation& map_;
  const IndexRows& rows_;
  v1::RawIndexMap raw_;
  int64_t stride_ = 0;  // The size of a row in bytes.
};

class RleMap final : public MapEncoder {
 public:
  RleMap(const model::Segmentation& map, const std::vector<uint16_t>& shown,
         const std::vector<std::string>& labels)
      : map_(map),
        shown_(shown),
        labels_(labels),
        runs_(map.height, map.width, shown.size()) {}

  bool done() const override { return runs_.done(); }
  absl::Status EncodeNext() override {
    // AddColumns() is fastest if the number of columns is a multiple of
    // kColumns. A step therefore encodes such a multiple if possible. If
    // kPieceRunPixels allows fewer than kColumns columns, a step encodes as
    // many columns as are allowed, but at least one.
    constexpr int kColumns = 64;
    const int columns = kPieceRunPixels / std::max(1, map_.height);
    runs_.AddColumns(columns >= kColumns ? columns / kColumns * kColumns
                                         : std::max(1, columns),
                     map_.labels);
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    int64_t bytes = 0;
    for (int id = 0; id < shown_.size(); ++id) {
      if (shown_[id] == id) bytes += runs_.bytes(id);
    }
    return bytes;
  }
  void Take(v1::SegmentResult* answer) override {
    v1::ClassRleList* classes = answer->mutable_rle();
    for (int id = 0; id < shown_.size(); ++id) {
      std::string counts = runs_.Take(id);
      if (shown_[id] != id || counts.empty()) continue;
      v1::ClassRle* one = classes->add_classes();
      one->set_class_id(id);
      one->set_label(labels_[id]);
      one->mutable_rle()->set_height(map_.height);
      one->mutable_rle()->set_width(map_.width);
      one->mutable_rle()->set_counts(std::move(counts));
    }
  }

 private:
  const model::Segmentation& map_;
  const std::vector<uint16_t>& shown_;
  const std::vector<std::string>& labels_;
  base::ClassRunLengths runs_;
};

void AddAreas(const model::Segmentation& map,
              const std::vector<uint16_t>& shown,
              const std::vector<std::string>& labels,
              v1::SegmentResult* answer) {
  std::vector<int> ids;
  for (size_t id = 0; id < shown.size(); ++id) {
    if (map.areas[id] > 0 && shown[id] == id) ids.push_back(id);
  }
  std::stable_sort(ids.begin(), ids.end(), [&map](int a, int b) {
    return map.areas[a] > map.areas[b];
  });
  for (const int id : ids) {
    v1::ClassArea* area = answer->add_areas();
    area->set_class_id(id);
    area->set_label(labels[id]);
    area->set_pixel_count(map.areas[id]);
    area->set_fraction(static_cast<double>(map.areas[id]) / map.labels.size());
  }
}

// Encodes a class map in steps. Each step encodes some rows or columns of the
// map. If a confidence map is requested, the last steps encode it.
class SegmentationEncoder final : public AnswerEncoder {
 public:
  SegmentationEncoder(const v1::SegmentParams& params,
                      const repository::ModelDirectory& model,
                      model::Segmentation map)
      : params_(params),
        model_(model),
        map_(std::move(map)),
        shown_(ShownAs(params.class_filter(), model.labels.size())),
        rows_(map_, shown_),
        encoder_(MakeMapEncoder()) {
    if (params.include_confidence_map()) {
      confidence_.emplace(map_.width, map_.height, 8);
    }
  }

  bool done() const override {
    return encoder_->done() &&
           (!confidence_.has_value() || confidence_->done());
  }
  absl::Duration NextCost() const override {
    const int64_t pixels = int64_t{1} * map_.height * map_.width;
    return std::min<int64_t>(pixels, kPiecePixels) * kPerPixel;
  }
  absl::Status EncodeNext() override {
    if (!encoder_->done()) return encoder_->EncodeNext();
    return confidence_->AddRows(
        RowsOfPiece(map_.width), [this](int y, uint8_t* row) {
          std::memcpy(row, &map_.confidence[size_t{1} * y * map_.width],
                      map_.width);
        });
  }
  int64_t bytes() const override {
    return encoder_->bytes() +
           (confidence_.has_value() ? confidence_->bytes() : 0);
  }
  Answer Take() override {
    v1::SegmentResult answer;
    answer.set_height(map_.height);
    answer.set_width(map_.width);
    encoder_->Take(&answer);
    if (params_.include_class_areas()) {
      AddAreas(map_, shown_, model_.labels, &answer);
    }
    if (confidence_.has_value()) {
      answer.set_confidence_png(confidence_->Take());
    }
    return {std::move(answer), {}};
  }

 private:
  std::unique_ptr<MapEncoder> MakeMapEncoder() const {
    if (params_.encoding() == v1::SegmentParams::RLE_PER_CLASS) {
      return std::make_unique<RleMap>(map_, shown_, model_.labels);
    }
    if (params_.encoding() == v1::SegmentParams::RAW_INDEX) {
      return std::make_unique<RawMap>(map_, rows_);
    }
    return std::make_unique<PngMap>(map_, rows_);
  }

  const v1::SegmentParams& params_;
  const repository::ModelDirectory& model_;
  const model::Segmentation map_;
  const std::vector<uint16_t> shown_;
  const IndexRows rows_;
  const std::unique_ptr<MapEncoder> encoder_;
  std::optional<base::GreyPngEncoder> confidence_;
};

// Computes the class map from the logits of the model's head, then encodes the
// map.
class LogitsEncoder final : public AnswerEncoder {
 public:
  // `params` and `model` must outlive this object.
  LogitsEncoder(const v1::SegmentParams& params,
                const repository::ModelDirectory& model,
                model::Segmentation logits, const image::PictureFrame& frame)
      : params_(params),
        model_(model),
        map_(std::move(logits), model.labels.size(), frame.input_size,
             frame.seen, params.include_confidence_map()) {}

  bool done() const override { return encoder_ != nullptr && encoder_->done(); }
  absl::Duration NextCost() const override {
    return encoder_ != nullptr ? encoder_->NextCost() : map_.NextCost();
  }
  absl::Status EncodeNext() override {
    if (encoder_ != nullptr) return encoder_->EncodeNext();
    map_.ComputeNext();
    if (map_.done()) {
      encoder_ =
          std::make_unique<SegmentationEncoder>(params_, model_, map_.Take());
    }
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    return encoder_ == nullptr ? 0 : encoder_->bytes();
  }
  Answer Take() override { return encoder_->Take(); }

 private:
  const v1::SegmentParams& params_;
  const repository::ModelDirectory& model_;
  LogitsMap map_;
  std::unique_ptr<AnswerEncoder> encoder_;  // Null while the map is computed.
};

}  // namespace

int IndexBytes(int classes) { return classes <= kMaxByteClasses ? 1 : 2; }

absl::Duration SegmentationEncodingCost(const v1::SegmentParams& params,
                                        const image::PictureSize& map) {
  return map.pixels() * (1 + params.include_confidence_map()) * kPerPixel;
}

std::unique_ptr<AnswerEncoder> MakeSegmentationEncoder(
    const v1::SegmentParams& params, const repository::ModelDirectory& model,
    model::Segmentation map, const image::PictureFrame& frame) {
  if (map.logits.empty()) {
    return std::make_unique<SegmentationEncoder>(params, model, std::move(map));
  }
  return std::make_unique<LogitsEncoder>(params, model, std::move(map), frame);
}

}  // namespace sfmamba::prediction
