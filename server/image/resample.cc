#include "server/image/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/steady_clock.h"
#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::image {
namespace {

using kernels::FixedPointTaps;

// Interval between two looks at the watch, in multiplied pixels: some hundred
// microseconds.
constexpr int64_t kWatchedPixels = 1 << 19;

// Keys' cubic with a = -0.5.
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Returns the weights of outputs begin .. begin + size - 1 of a side of `in`
// pixels resized to `out`. Follows Pillow operation by operation, because
// doubles round too.
FixedPointTaps MakeTaps(int in, int out, int begin, int size) {
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  const double inverse = 1.0 / filter_scale;
  const int max_count = static_cast<int>(std::ceil(support)) * 2 + 1;
  FixedPointTaps taps(size, max_count);
  std::vector<double> exact(max_count);
  std::vector<int32_t> weights(max_count);
  for (int i = 0; i < size; ++i) {
    const double center = (begin + i + 0.5) * scale;
    const int low = std::max(0, static_cast<int>(center - support + 0.5));
    const int high = std::min(in, static_cast<int>(center + support + 0.5));
    double sum = 0;
    for (int k = low; k < high; ++k) {
      exact[k - low] = Cubic((k - center + 0.5) * inverse);
      sum += exact[k - low];
    }
    for (int k = 0; k < high - low; ++k) {
      const double weight = (sum != 0 ? exact[k] / sum : exact[k]) *
                            (1 << kernels::kWeightFractionBits);
      weights[k] = static_cast<int32_t>(weight + (weight < 0 ? -0.5 : 0.5));
    }
    taps.Set(i, low, weights.data(), high - low);
  }
  return taps;
}

// Tells when enough was done to ask the watch.
class Pace {
 public:
  explicit Pace(const base::DecodeWatch& watch) : watch_(watch) {}

  // Whether the watch was asked, and has expired.
  bool Expired(int64_t pixels) {
    done_ += pixels;
    if (done_ < kWatchedPixels) return false;
    done_ = 0;
    return watch_.Expired();
  }

 private:
  const base::DecodeWatch& watch_;
  int64_t done_ = 0;
};

}  // namespace

struct BicubicResizer::Taps {
  std::optional<FixedPointTaps> across, down;  // Unset if the side stays.
};

BicubicResizer::BicubicResizer(int width, int height,
                               const ResizeWindow& window)
    : window_(window),
      row_bytes_(size_t{3} * window.columns),
      taps_(std::make_unique<Taps>()),
      result_(row_bytes_ * window.rows) {
  if (width != window.width) {
    taps_->across = MakeTaps(width, window.width, window.left, window.columns);
  }
  if (height != window.height) {
    taps_->down = MakeTaps(height, window.height, window.top, window.rows);
  }
  const int kept = taps_->down ? taps_->down->max_count() : 1;
  begin_ = taken_ = FirstOf(0);
  end_ = EndOf(window.rows - 1);
  // The rows that one output needs, and those of the next Take().
  slots_ = kept + kAtOnce;
  narrow_.resize(slots_ * row_bytes_);
  combined_.resize(kept);
  readable_ = taps_->across ? kernels::ReadableRowBytes(*taps_->across)
                            : size_t{3} * width;
}

BicubicResizer::~BicubicResizer() = default;

int BicubicResizer::FirstOf(int output) const {
  return taps_->down ? taps_->down->first(output) : window_.top + output;
}

int BicubicResizer::EndOf(int output) const {
  return taps_->down ? taps_->down->end(output) : window_.top + output + 1;
}

int64_t BicubicResizer::Take(const uint8_t* const* rows) {
  const int64_t narrowed = Narrow(rows);
  taken_ = std::min(taken_ + kAtOnce, end_);
  int64_t combined = 0;
  for (; made_ < window_.rows && EndOf(made_) <= taken_; ++made_) {
    combined += Combine(made_);
  }
  return narrowed + combined;
}

int64_t BicubicResizer::Narrow(const uint8_t* const* rows) {
  kernels::ResizeRowsArgs args;
  for (int i = 0; i < kAtOnce; ++i) {
    // Beyond the end the last row is computed again: the kernel takes kAtOnce.
    const int y = std::min(taken_ + i, end_ - 1);
    args.in[i] = rows[y - taken_];
    args.out[i] = &narrow_[y % slots_ * row_bytes_];
  }
  if (taps_->across) {
    args.taps = &*taps_->across;
    kernels::ResizeRows(args);
    return int64_t{1} * kAtOnce * window_.columns * args.taps->max_count();
  }
  for (int i = 0; i < kAtOnce; ++i) {
    memcpy(args.out[i], args.in[i] + 3 * window_.left, row_bytes_);
  }
  return int64_t{1} * kAtOnce * window_.columns;
}

int64_t BicubicResizer::Combine(int output) {
  const int first = FirstOf(output);
  const int count = EndOf(output) - first;
  for (int i = 0; i < count; ++i) {
    combined_[i] = &narrow_[(first + i) % slots_ * row_bytes_];
  }
  uint8_t* out = &result_[row_bytes_ * output];
  if (taps_->down) {
    const int size = row_bytes_;
    kernels::CombineRows({&*taps_->down, output, combined_.data(), size, out});
  } else {
    memcpy(out, combined_[0], row_bytes_);
  }
  return int64_t{1} * window_.columns * count;
}

absl::StatusOr<std::vector<uint8_t>> ResizeBicubic(
    const uint8_t* rgb, int width, int height, const ResizeWindow& window,
    const base::DecodeWatch& watch) {
  constexpr int kAtOnce = BicubicResizer::kAtOnce;
  BicubicResizer resizer(width, height, window);
  const size_t row_bytes = size_t{3} * width;
  const size_t readable = resizer.readable_bytes();
  const uint8_t* const picture_end = rgb + row_bytes * height;
  // Copies of the last rows: the kernel may read beyond the picture's end.
  std::vector<uint8_t> padded(kAtOnce * readable);
  Pace pace(watch);
  while (!resizer.done()) {
    const uint8_t* rows[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const int y = std::min(resizer.next() + i, height - 1);
      rows[i] = rgb + row_bytes * y;
      if (picture_end - rows[i] >= static_cast<int64_t>(readable)) continue;
      rows[i] = static_cast<const uint8_t*>(memcpy(
          &padded[i * readable], rows[i], std::min(row_bytes, readable)));
    }
    if (pace.Expired(resizer.Take(rows))) return watch.status();
  }
  return std::move(resizer).result();
}

RowResizer::RowResizer(int width, int height, const ResizeWindow& window)
    : resizer_(width, height, window),
      begin_(resizer_.next()),
      stride_((std::max(resizer_.readable_bytes(), size_t{3} * width) + 15) /
              16 * 16),
      rows_(kUnaligned + kRows * stride_) {}

uint8_t* RowResizer::Row(int y) {
  if (y < begin_) return RowAt(0);  // Overwritten: the window begins below.
  const int slot = (y - begin_) % kRows;
  if (slot == 0 && y > begin_) TakeRows();
  return RowAt(slot);
}

std::vector<uint8_t> RowResizer::Finish() {
  TakeRows();
  return std::move(resizer_).result();
}

void RowResizer::TakeRows() {
  if (resizer_.done()) return;
  const absl::Time start = base::SteadyNow();
  for (int i = 0; i < kRows && !resizer_.done(); i += BicubicResizer::kAtOnce) {
    const uint8_t* rows[BicubicResizer::kAtOnce];
    for (int j = 0; j < BicubicResizer::kAtOnce; ++j) {
      rows[j] = RowAt(i + j);
    }
    resizer_.Take(rows);
  }
  spent_ += base::SteadyNow() - start;
}

}  // namespace sfmamba::image
