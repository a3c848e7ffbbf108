#include "server/prediction/logits_map.h"

#include <algorithm>

#include "kernels/segmentation/segmentation_argmax.h"

namespace sfmamba::prediction {
namespace {

// kPerFourLogits is the expected time to resize and compare four logits of a
// pixel. kPerFourExponentials is the expected time to compute four exponentials
// of the softmax.
constexpr absl::Duration kPerFourLogits = absl::Nanoseconds(1);
constexpr absl::Duration kPerFourExponentials = absl::Nanoseconds(2);
// Some work for a pixel does not depend on the number of classes. This work
// takes as long as resizing and comparing kLogitsOfPixel logits.
constexpr int kLogitsOfPixel = 32;
// The intended duration of one ComputeNext(). A call computes at least one row.
constexpr absl::Duration kPiece = absl::Milliseconds(4);

}  // namespace

LogitsMap::LogitsMap(model::Segmentation logits, int classes,
                     const image::PictureSize& input,
                     const image::PictureSize& out, bool confidence)
    : logits_(std::move(logits)),
      input_(input),
      confidence_(confidence),
      cost_of_row_(Cost(out, classes, confidence) / out.height) {
  map_.height = out.height;
  map_.width = out.width;
  map_.areas.resize(classes);
}

absl::Duration LogitsMap::NextCost() const {
  return std::min(std::max(kPiece, cost_of_row_),
                  (map_.height - next_) * cost_of_row_);
}

void LogitsMap::ComputeNext() {
  if (next_ == 0) {
    rows_ = kernels::ComposeResizes(logits_.height, input_.height, map_.height);
    columns_ = kernels::ComposeResizes(logits_.width, input_.width, map_.width);
    // This only reserves memory. Each step clears the memory of its own rows.
    // Clearing the memory of the whole map at once would take tens of
    // milliseconds.
    const int64_t pixels = int64_t{1} * map_.height * map_.width;
    map_.labels.reserve(pixels);
    if (confidence_) map_.confidence.reserve(pixels);
  }
  const int rows = std::max<int64_t>(1, kPiece / cost_of_row_);
  const int end = std::min(map_.height, next_ + rows);
  map_.labels.resize(int64_t{1} * end * map_.width);
  if (confidence_) map_.confidence.resize(map_.labels.size());
  kernels::SegmentationArgmaxArgs args{};
  args.logits = logits_.logits.data();
  args.height = logits_.height;
  args.width = logits_.width;
  args.classes = map_.areas.size();
  args.out_height = map_.height;
  args.out_width = map_.width;
  args.row_begin = next_;
  args.row_end = end;
  args.labels = map_.labels.data();
  args.confidence = confidence_ ? map_.confidence.data() : nullptr;
  args.areas = map_.areas.data();
  kernels::SegmentationArgmaxCpu(args, rows_, columns_);
  next_ = end;
}

int64_t LogitsMap::Bytes(const image::PictureSize& input, int classes) {
  // The model's head returns logits with a quarter of the input's height and
  // width, rounded up.
  const auto quarter = [](int side) { return (side + 3) / 4; };
  return int64_t{1} * quarter(input.height) * quarter(input.width) * classes *
         sizeof(float);
}

absl::Duration LogitsMap::Cost(const image::PictureSize& out, int classes,
                               bool confidence) {
  const absl::Duration pixel =
      (classes + kLogitsOfPixel) * kPerFourLogits +
      (confidence ? classes * kPerFourExponentials : absl::ZeroDuration());
  return out.pixels() * pixel / 4;
}

}  // namespace sfmamba::prediction
