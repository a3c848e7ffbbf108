#include "server/prediction/mask_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/coco_rle.h"
#include "base/mask_png_encoder.h"

namespace sfmamba::prediction {
namespace {

using base::LineRuns;

// Column by column.
class RleMaskEncoder final : public MaskEncoder {
 public:
  RleMaskEncoder(std::shared_ptr<const model::InstanceMask> mask,
                 const image::PictureFrame& frame)
      : mask_(std::move(mask)),
        frame_(frame),
        next_(mask_->bounds().left),
        end_(next_ + mask_->bounds().width) {}

  int lines_left() const override { return end_ - next_; }
  int64_t Encode(int lines) override {
    const int end = next_ + std::min(lines, lines_left());
    runs_.clear();
    mask_->AddColumns(next_, end, &runs_);
    for (int i = 0; next_ < end; ++i, ++next_) {
      const int64_t column =
          int64_t{1} * (frame_.left + next_) * frame_.picture.height +
          frame_.top;
      const absl::Span<const int> edges = runs_.line(i);
      for (size_t k = 0; k < edges.size(); k += 2) {
        rle_.Add(column + edges[k], column + edges[k + 1]);
      }
    }
    return runs_.edges.size();
  }
  int64_t bytes() const override { return rle_.bytes(); }
  void Take(DetectedObject* object) override {
    object->mask = CocoRle{frame_.picture.height, frame_.picture.width,
                           rle_.Finish(frame_.picture.pixels())};
  }

 private:
  const std::shared_ptr<const model::InstanceMask> mask_;
  const image::PictureFrame frame_;
  int next_;  // Column of what the model saw.
  const int end_;
  LineRuns runs_;  // Kept for its memory.
  base::RleWriter rle_;
};

// The box rounded outwards, at least one pixel each way.
image::PixelRect Outwards(const model::Box& box) {
  image::PixelRect rect;
  rect.left = std::floor(box.x1);
  rect.top = std::floor(box.y1);
  rect.width = std::max<int>(1, std::ceil(box.x2) - rect.left);
  rect.height = std::max<int>(1, std::ceil(box.y2) - rect.top);
  return rect;
}

// Row by row.
class PngMaskEncoder final : public MaskEncoder {
 public:
  PngMaskEncoder(std::shared_ptr<const model::InstanceMask> mask,
                 const image::PictureFrame& frame, const image::PixelRect& rect)
      : mask_(std::move(mask)),
        rect_(rect),
        shift_(frame.left - rect.left),
        top_(rect.top - frame.top),
        png_(rect.width, rect.height) {
    const model::InstanceMask::Bounds bounds = mask_->bounds();
    next_ = std::clamp(bounds.top, top_, top_ + rect.height);
    end_ = std::clamp(bounds.top + bounds.height, next_, top_ + rect.height);
    png_.AddEmptyRows(next_ - top_);
  }

  int lines_left() const override { return end_ - next_; }
  int64_t Encode(int lines) override {
    const int end = next_ + std::min(lines, lines_left());
    runs_.clear();
    mask_->AddRows(next_, end, &runs_);
    for (int& edge : runs_.edges) {
      edge = std::clamp(edge + shift_, 0, rect_.width);
    }
    for (int i = 0; next_ < end; ++i, ++next_) png_.AddRow(runs_.line(i));
    return runs_.edges.size();
  }
  int64_t bytes() const override { return png_.bytes(); }
  void Take(DetectedObject* object) override {
    png_.AddEmptyRows(top_ + rect_.height - end_);
    object->mask = PngCrop{png_.Take()};
  }

 private:
  const std::shared_ptr<const model::InstanceMask> mask_;
  const image::PixelRect rect_;
  const int shift_;  // From a column of what the model saw to one of the file.
  const int top_;    // The file's first row, in what the model saw.
  int next_;         // Row of what the model saw.
  int end_;
  LineRuns runs_;  // Kept for its memory.
  base::MaskPngEncoder png_;
};

}  // namespace

std::unique_ptr<MaskEncoder> MakeMaskEncoder(
    DetectParams::MaskEncoding encoding,
    std::shared_ptr<const model::InstanceMask> mask,
    const image::PictureFrame& frame, const model::Box& box) {
  if (encoding == DetectParams::MaskEncoding::kPngCrop) {
    return std::make_unique<PngMaskEncoder>(std::move(mask), frame,
                                            Outwards(box));
  }
  return std::make_unique<RleMaskEncoder>(std::move(mask), frame);
}

}  // namespace sfmamba::prediction
