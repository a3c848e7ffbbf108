// What Segment requests ask for and get.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "base/coco_rle.h"
#include "base/png_encoder.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/sliding/sliding_map.h"
#include "server/prediction/sliding_window.h"
#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {
namespace {

// Classes whose indices fit into a byte, with 255 left for "ignore".
constexpr int kMaxByteClasses = 255;
// Most pixels of a piece, which has at least one row. Encoding takes 1 to 14 ns
// a pixel.
constexpr int kPiecePixels = 1 << 18;
// Most pixels of a piece of run lengths, which take up to 4 ns a pixel.
constexpr int kPieceRunPixels = 1 << 20;
constexpr absl::Duration kPerPixel = absl::Nanoseconds(8);

// What each class is shown as: itself or, filtered out, "ignore".
std::vector<uint16_t> ShownAs(absl::Span<const int32_t> filter, int classes) {
  const uint16_t ignore = classes <= kMaxByteClasses ? 0xff : 0xffff;
  std::vector<uint16_t> shown(classes, filter.empty() ? 0 : ignore);
  if (filter.empty()) {
    for (int i = 0; i < classes; ++i) shown[i] = i;
  }
  for (const int id : filter) shown[id] = id;
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

// The map in one of its encodings, in pieces.
class MapEncoder {
 public:
  virtual ~MapEncoder() = default;

  virtual bool done() const = 0;
  virtual absl::Status EncodeNext() = 0;
  virtual int64_t bytes() const = 0;
  // Puts the map into the answer; once, when done().
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
  int64_t stride_ = 0;  // Bytes of a row.
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
    constexpr int kColumns = 64;  // A multiple of which is read, if it may.
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

// A piece is kPiecePixels pixels of the map or, after it, of the confidence.
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

// Fills the map as the windows' logits come.
class WindowCollector final : public PartCollector {
 public:
  WindowCollector(const v1::SegmentParams& params,
                  const repository::ModelDirectory& model,
                  const SlideGrid& grid, const image::PictureSize& size)
      : params_(params),
        model_(model),
        map_(grid, model.labels.size(), size, params.include_confidence_map()) {
  }

  void Add(int i, model::Result result) override {
    map_.Add(i, std::get<model::Segmentation>(std::move(result)));
  }
  int Wanted() const override { return map_.Wanted(); }
  bool CanAdvance() const override { return map_.IsReady(); }
  absl::Duration AdvanceCost() const override { return map_.NextCost(); }
  void Advance() override { map_.ComputeNext(); }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame&) override {
    return std::make_unique<SegmentationEncoder>(params_, model_, map_.Take());
  }

 private:
  const v1::SegmentParams& params_;
  const repository::ModelDirectory& model_;
  SlidingMap map_;
};

class SegmentationHandler final : public TaskHandler {
 public:
  explicit SegmentationHandler(const v1::SegmentParams& params)
      : params_(params) {}

  model::VisionTask task() const override {
    return model::VisionTask::kSegmentation;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override {
    absl::Status status = ValidateParams(params_, model.labels.size());
    if (status.ok() && params_.has_slide()) {
      status = ValidateSlide(params_.slide(), model.config);
    }
    return status;
  }
  absl::Status Divide(const repository::ModelDirectory& model, int most,
                      ImageFacts* image) const override {
    if (!params_.has_slide()) return absl::OkStatus();
    return DivideIntoWindows(params_.slide(), model.config, most, image);
  }
  std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& model,
      const ImageFacts& image) const override {
    return std::make_unique<WindowCollector>(params_, model, Grid(model, image),
                                             MapSize(image));
  }
  int64_t ResultBytes(const repository::ModelDirectory& model,
                      const ImageFacts& image) const override {
    const int64_t map = MapSize(image).pixels() *
                        (sizeof(uint16_t) + params_.include_confidence_map());
    if (!params_.has_slide()) return map;
    return map + SlidingMap::Bytes(Grid(model, image), model.labels.size());
  }
  absl::Duration LongestAnswer(const repository::ModelDirectory& model,
                               const ImageFacts& image) const override {
    const absl::Duration map = MapSize(image).pixels() *
                               (1 + params_.include_confidence_map()) *
                               kPerPixel;
    if (!params_.has_slide()) return map;
    return map + SlidingMap::Cost(Grid(model, image), model.labels.size(),
                                  MapSize(image));
  }
  void FillTask(const repository::ModelDirectory&,
                batching::BatchTask* task) const override {
    model::SegmentationOptions options;
    options.original_size = !IsOfModelSize();
    options.confidence = params_.include_confidence_map();
    options.logits = params_.has_slide();
    task->options = options;
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame&) const override {
    return std::make_unique<SegmentationEncoder>(
        params_, model, std::get<model::Segmentation>(std::move(result)));
  }
  absl::string_view SmallerResponse() const override {
    return "fewer images, encoding PNG_INDEX, output_size MODEL, or no "
           "include_confidence_map";
  }

 private:
  bool IsOfModelSize() const {
    return params_.output_size() == v1::SegmentParams::MODEL;
  }
  const image::PictureSize& MapSize(const ImageFacts& image) const {
    return IsOfModelSize() ? image.input : image.seen;
  }
  SlideGrid Grid(const repository::ModelDirectory& model,
                 const ImageFacts& image) const {
    return GridOf(params_.slide(), model.config, image.input);
  }

  const v1::SegmentParams params_;
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeHandler(
    const v1::SegmentParams& params) {
  return std::make_unique<SegmentationHandler>(params);
}

}  // namespace sfmamba::prediction
