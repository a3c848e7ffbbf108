#include "server/prediction/mask_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/coco_rle.h"
#include "base/png_encoder.h"

namespace sfmamba::prediction {
namespace {

using base::LineRuns;

// Encodes a mask as COCO run lengths, column by column.
class RleMaskEncoder final : public MaskEncoder {
 public:
  RleMaskEncoder(std::shared_ptr<const model::InstanceMask> mask,
                 const image::PictureFrame& frame)
      : mask_(std::move(mask)),
        frame_(frame),
        next_(mask_->bounds().left),
        end_(next_ + mask_->bounds().width) {}

  int lines_left() const override { return end_ - next_; }
  absl::StatusOr<int64_t> Encode(int lines) override {
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
  void Take(v1::Detection* object) override {
    v1::CocoRle* rle = object->mutable_rle();
    rle->set_height(frame_.picture.height);
    rle->set_width(frame_.picture.width);
    rle->set_counts(rle_.Finish(frame_.picture.pixels()));
  }

 private:
  const std::shared_ptr<const model::InstanceMask> mask_;
  const image::PictureFrame frame_;
  // The next column to encode, and the end of the mask's columns. Both numbers
  // count from the left edge of the region that the model saw.
  int next_;
  const int end_;
  // The runs in the columns of one Encode() call. This is a member, so that the
  // next call reuses the memory.
  LineRuns runs_;
  base::RleWriter rle_;
};

// Returns the smallest rectangle of whole pixels that contains the box. The
// rectangle has at least one pixel.
image::PixelRect Outwards(const model::Box& box) {
  image::PixelRect rect;
  rect.left = std::floor(box.x1);
  rect.top = std::floor(box.y1);
  rect.width = std::max<int>(1, std::ceil(box.x2) - rect.left);
  rect.height = std::max<int>(1, std::ceil(box.y2) - rect.top);
  return rect;
}

// Sets the bits of the pixels [begin, end) in `row`, which has one bit per
// pixel. The highest bit of a byte is the leftmost of its 8 pixels.
void SetPixels(int begin, int end, uint8_t* row) {
  if (begin >= end) return;
  const int first = begin / 8, last = (end - 1) / 8;
  const int first_bits = 0xff >> begin % 8;
  const int last_bits = 0xff << (7 - (end - 1) % 8);
  if (first == last) {
    row[first] |= first_bits & last_bits;
    return;
  }
  row[first] |= first_bits;
  std::fill(row + first + 1, row + last, 0xff);
  row[last] |= last_bits;
}

// Encodes a mask as a PNG, row by row.
class PngMaskEncoder final : public MaskEncoder {
 public:
  PngMaskEncoder(std::shared_ptr<const model::InstanceMask> mask,
                 const image::PictureFrame& frame, const image::PixelRect& rect)
      : mask_(std::move(mask)),
        width_(rect.width),
        left_(rect.left - frame.left),
        top_(rect.top - frame.top),
        lines_left_(rect.height),
        png_(rect.width, rect.height, /*bit_depth=*/1) {}

  int lines_left() const override { return lines_left_; }
  absl::StatusOr<int64_t> Encode(int lines) override {
    lines = std::min(lines, lines_left_);
    // Only the rows [begin, end) of the mask can have set pixels. The other
    // rows that this call encodes are empty.
    const model::InstanceMask::Bounds bounds = mask_->bounds();
    const int begin =
        std::clamp(bounds.top, next_ + top_, next_ + top_ + lines);
    const int end =
        std::clamp(bounds.top + bounds.height, begin, next_ + top_ + lines);
    runs_.clear();
    if (begin < end) mask_->AddRows(begin, end, &runs_);
    const absl::Status status = png_.AddRows(lines, [&](int y, uint8_t* row) {
      std::fill_n(row, (width_ + 7) / 8, 0);
      if (y + top_ < begin || y + top_ >= end) return;
      const absl::Span<const int> edges = runs_.line(y + top_ - begin);
      for (size_t k = 0; k < edges.size(); k += 2) {
        SetPixels(std::clamp(edges[k] - left_, 0, width_),
                  std::clamp(edges[k + 1] - left_, 0, width_), row);
      }
    });
    if (!status.ok()) return status;
    next_ += lines;
    lines_left_ -= lines;
    return runs_.edges.size();
  }
  int64_t bytes() const override { return png_.bytes(); }
  void Take(v1::Detection* object) override {
    object->set_png_crop(png_.Take());
  }

 private:
  const std::shared_ptr<const model::InstanceMask> mask_;
  const int width_;  // The number of columns of the PNG.
  // The position of the PNG's first column and row in the region that the model
  // saw.
  const int left_;
  const int top_;
  int next_ = 0;  // The next row of the PNG to encode.
  int lines_left_;
  // The runs in the rows of one Encode() call. This is a member, so that the
  // next call reuses the memory.
  LineRuns runs_;
  base::GreyPngEncoder png_;
};

}  // namespace

std::unique_ptr<MaskEncoder> MakeMaskEncoder(
    v1::DetectParams::MaskEncoding encoding,
    std::shared_ptr<const model::InstanceMask> mask,
    const image::PictureFrame& frame, const model::Box& box) {
  if (encoding == v1::DetectParams::PNG_CROP) {
    return std::make_unique<PngMaskEncoder>(std::move(mask), frame,
                                            Outwards(box));
  }
  return std::make_unique<RleMaskEncoder>(std::move(mask), frame);
}

}  // namespace sfmamba::prediction
