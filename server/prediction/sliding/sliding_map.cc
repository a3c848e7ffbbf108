#include "server/prediction/sliding/sliding_map.h"

#include <algorithm>
#include <utility>

#include "kernels/segmentation/segmentation_argmax.h"
#include "kernels/segmentation/window_average.h"

namespace sfmamba::prediction {
namespace {

// The expected time to add four logits of a window to the average. Resizing and
// comparing four averaged logits takes about as long. The constant is for four
// logits, because the time for one logit is less than a nanosecond.
constexpr absl::Duration kPerFourLogits = absl::Nanoseconds(1);
// Some work for a pixel does not depend on the number of classes. This work
// takes as long as the work for kLogitsOfPixel additional logits.
constexpr int kLogitsOfPixel = 32;
// The intended duration of one ComputeNext(). A call computes at least one row.
constexpr absl::Duration kPiece = absl::Milliseconds(5);

kernels::ResizeTaps ResizeOf(int size, int out_size) {
  return kernels::ComposeResizes(size, size, out_size);
}

}  // namespace

SlidingMap::SlidingMap(const SlideGrid& grid, int classes,
                       const image::PictureSize& out, bool confidence)
    : grid_(grid),
      classes_(classes),
      rows_(ResizeOf(grid.picture().height, out.height)),
      columns_(ResizeOf(grid.picture().width, out.width)),
      cost_of_row_(Cost(grid, classes, out) / out.height),
      means_(int64_t{2} * grid.picture().width * classes),
      logits_(grid.windows()),
      missing_(grid.rows(), grid.columns()) {
  map_.height = out.height;
  map_.width = out.width;
  map_.labels.resize(out.pixels());
  map_.confidence.resize(confidence ? out.pixels() : 0);
  map_.areas.resize(classes);
}

void SlidingMap::Add(int64_t window, model::Segmentation logits) {
  const absl::MutexLock lock(&mu_);
  logits_[window] = std::move(logits);
  --missing_[window / grid_.columns()];
  while (complete_ < grid_.rows() && missing_[complete_] == 0) ++complete_;
}

int64_t SlidingMap::Wanted() const {
  return std::min(grid_.windows(), int64_t{1} * first_kept_ * grid_.columns() +
                                       grid_.MostKept());
}

int SlidingMap::AvailableRows() const {
  const absl::MutexLock lock(&mu_);
  return complete_ == grid_.rows() ? grid_.picture().height
                                   : grid_.Top(complete_);
}

bool SlidingMap::IsReady() const {
  // Reads the atomic next_ only once. Both conditions below then use the same
  // value, even if another thread changes next_ between them.
  const int next = next_;
  return next < map_.height &&
         rows_.index[(next + 1) * rows_.count - 1] < AvailableRows();
}

absl::Duration SlidingMap::NextCost() const {
  return std::min(std::max(kPiece, cost_of_row_),
                  (map_.height - next_) * cost_of_row_);
}

int SlidingMap::MeanOf(int row, int other) {
  for (int slot : {0, 1}) {
    if (mean_rows_[slot] == row) return slot;
  }
  const int slot = mean_rows_[0] == other ? 1 : 0;
  std::vector<kernels::WindowAverageArgs::Window> windows;
  for (int y = first_kept_; y < grid_.rows() && grid_.Top(y) <= row; ++y) {
    if (grid_.Top(y) + grid_.window().height <= row) continue;
    for (int x = 0; x < grid_.columns(); ++x) {
      const int64_t window = int64_t{1} * y * grid_.columns() + x;
      windows.push_back(
          {logits_[window].logits.data(), grid_.Top(y), grid_.Left(x)});
    }
  }
  kernels::WindowAverageArgs args{};
  args.windows = windows.data();
  args.count = windows.size();
  args.width = logits_width_;
  args.classes = classes_;
  args.rows = &window_rows_;
  args.columns = &window_columns_;
  args.row = row;
  args.picture_width = grid_.picture().width;
  args.average = &means_[int64_t{1} * slot * args.picture_width * classes_];
  kernels::WindowAverageCpu(args);
  mean_rows_[slot] = row;
  return slot;
}

void SlidingMap::ComputeNext() {
  if (!IsReady()) return;
  const int available = AvailableRows();
  if (logits_width_ == 0) {
    logits_width_ = logits_[0].width;
    window_rows_ = ResizeOf(logits_[0].height, grid_.window().height);
    window_columns_ = ResizeOf(logits_width_, grid_.window().width);
  }
  kernels::SegmentationArgmaxArgs args{};
  args.logits = means_.data();
  args.height = 2;
  args.width = grid_.picture().width;
  args.classes = classes_;
  args.out_height = args.row_end = 1;
  args.out_width = map_.width;
  args.areas = map_.areas.data();
  const int piece = std::max<int>(1, kPiece / cost_of_row_);
  int row = next_;
  const int end = std::min(map_.height, row + piece);
  for (; row < end; ++row) {
    const int* const from = &rows_.index[row * rows_.count];
    const float* const weight = &rows_.weight[row * rows_.count];
    const int last = from[rows_.count - 1];
    if (last >= available) break;
    const int first = MeanOf(from[0], last);
    const kernels::ResizeTaps taps = {
        rows_.count,
        rows_.count == 1 ? std::vector<int>{first}
                         : std::vector<int>{first, MeanOf(last, from[0])},
        std::vector<float>(weight, weight + rows_.count)};
    const int64_t place = int64_t{1} * row * map_.width;
    args.labels = &map_.labels[place];
    args.confidence =
        map_.confidence.empty() ? nullptr : &map_.confidence[place];
    kernels::SegmentationArgmaxCpu(args, taps, columns_);
  }
  // Frees the logits of windows that end above picture row `needed`. These
  // logits are not read again, because the map is computed from top to bottom.
  const int needed = row == map_.height ? grid_.picture().height
                                        : rows_.index[row * rows_.count];
  for (; first_kept_ < grid_.rows() &&
         grid_.Top(first_kept_) + grid_.window().height <= needed;
       ++first_kept_) {
    for (int x = 0; x < grid_.columns(); ++x) {
      logits_[int64_t{1} * first_kept_ * grid_.columns() + x] = {};
    }
  }
  next_ = row;
}

model::Segmentation SlidingMap::Take() {
  means_ = std::vector<float>();  // This frees memory. "= {}" would not.
  return std::move(map_);
}

int64_t SlidingMap::Bytes(const SlideGrid& grid, int classes) {
  // The model's head returns logits with a quarter of the window's height and
  // width, rounded up.
  const auto quarter = [](int side) { return (side + 3) / 4; };
  const int64_t window =
      int64_t{1} * quarter(grid.window().height) * quarter(grid.window().width);
  return (grid.MostKept() * window + int64_t{4} * grid.picture().width) *
             classes * sizeof(float) +
         grid.windows() * sizeof(model::Segmentation);
}

absl::Duration SlidingMap::Cost(const SlideGrid& grid, int classes,
                                const image::PictureSize& out) {
  const int64_t pixels = grid.windows() * grid.window().pixels() + out.pixels();
  return pixels * (classes + kLogitsOfPixel) * kPerFourLogits / 4;
}

}  // namespace sfmamba::prediction
